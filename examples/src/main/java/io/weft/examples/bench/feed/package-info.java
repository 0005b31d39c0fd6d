/**
 * The benchmark of feeds: tensors from map tasks onto training ranks, by a Weft feed and by Spark's
 * shuffle with Parquet files in between. One cluster, the two in turn.
 */
package io.weft.examples.bench.feed;
