/**
 * Views a feed's chunks in other formats without copying them. {@link
 * io.weft.spark.feed.arrow.TensorColumn} views a column as a tensor, {@link
 * io.weft.spark.feed.arrow.ArrowMemory} views a chunk as Arrow vectors and C structures, and {@link
 * io.weft.spark.feed.arrow.ShardFile} writes chunks as an Arrow IPC file.
 *
 * <p>All types are for one thread. The memory of a chunk belongs to the feed; Arrow reports when it
 * has released its buffers.
 */
package io.weft.spark.feed.arrow;
