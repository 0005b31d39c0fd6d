/** Counts events and bytes of an exchange. Thread-safe. */
package io.weft.metrics;
