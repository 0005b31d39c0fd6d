/**
 * {@code weft bench shuffle}: what a shuffle costs under Spark and under Weft, for several kinds of
 * data. Runs on the calling thread; processes and folders belong to a {@code Cleanup} that is
 * closed at its end or on Ctrl-C. The reports it writes stay.
 */
package io.weft.examples.bench;
