/** The default timeout of tests that wait for other threads. */
package io.weft.timeouts;
