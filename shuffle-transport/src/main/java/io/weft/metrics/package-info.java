/** What an exchange counts. Counters may be raised on any thread. */
package io.weft.metrics;
