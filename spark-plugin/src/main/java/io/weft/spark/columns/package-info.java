/**
 * Batches of the columns route. {@link io.weft.spark.columns.BatchScatter} splits rows by partition
 * into chunks on the map side, and {@link io.weft.spark.columns.BatchReader} reads chunks as
 * batches on the reduce side. {@link io.weft.spark.columns.HashBatchPartitioner} computes the
 * partition of every row.
 *
 * <p>{@code ChunkFormat} describes the bytes of a chunk. Objects belong to one task thread.
 * Builders allocate from a buffer pool, which the task returns when it closes its scatter or
 * reader. Chunks belong to their map output. Vectors own nothing and are valid until their reader
 * advances.
 */
package io.weft.spark.columns;
