/**
 * Batches of the columns route: the map side scatters rows into chunks column by column, and the
 * reduce side reads vectors over those chunks. Also computes the partition of every row.
 *
 * <p>{@link io.weft.spark.columns.ChunkFormat} describes a chunk, {@link
 * io.weft.spark.columns.ColumnLayout} the supported types. Objects belong to one task thread.
 * Builders allocate from a {@link io.weft.spark.columns.BufferPool}, which the task returns when it
 * closes its scatter or reader. Chunks belong to their map output. Vectors own nothing and are
 * valid until their reader advances.
 */
package io.weft.spark.columns;
