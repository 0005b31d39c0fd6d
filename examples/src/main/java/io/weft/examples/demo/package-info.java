/**
 * {@code weft demo}: runs TPC-H queries under Spark's shuffle and under Weft and compares the
 * results. Start at {@code DemoCommand}, which parses the options, and {@code Demo}, which runs
 * them. Runs on the calling thread. Processes and folders belong to a {@code Cleanup}, which is
 * closed at the end or on Ctrl-C.
 */
package io.weft.examples.demo;
