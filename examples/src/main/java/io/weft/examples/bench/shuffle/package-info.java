/**
 * {@code weft bench shuffle}: measures what a shuffle costs under Spark and under Weft, for several
 * kinds of data. Start at {@code ShuffleBench} and {@code Workload}. Runs on the calling thread.
 * Processes and folders belong to a {@code Cleanup}, which is closed at the end or on Ctrl-C. The
 * reports stay.
 */
package io.weft.examples.bench.shuffle;
