/** What an executor counts: one counter for each name, thread-safe, nothing to free. */
package io.weft.metrics;
