/**
 * {@code weft demo}: runs TPC-H queries under Spark's shuffle and under Weft and compares the
 * results. Runs on the calling thread. Processes and folders belong to a {@code Cleanup}, which is
 * closed at the end or on Ctrl-C.
 */
package io.weft.examples.demo;
