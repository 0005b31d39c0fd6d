/**
 * {@code weft demo}: TPC-H queries under Spark's shuffle and under Weft, in turn, with equal
 * results. Runs on the calling thread. What it opens belongs to a {@code Cleanup}, closed at its
 * end or on Ctrl-C.
 */
package io.weft.examples.demo;
