/**
 * {@code weft bench feed}: the benchmark of feeds. It hands tensors from map tasks to training
 * ranks by a Weft feed and by Spark's shuffle with Parquet files, alternately on one cluster. Start
 * at {@code FeedBench} and {@code FeedRead}.
 */
package io.weft.examples.bench.feed;
