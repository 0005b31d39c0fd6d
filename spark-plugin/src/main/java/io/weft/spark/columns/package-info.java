/**
 * Batches on their way through the exchange: column-wise scatter into chunks on the map side,
 * vectors over those chunks on the reduce side, and the partition id of every row.
 *
 * <p>A chunk is described in {@link io.weft.spark.columns.ChunkFormat}; which types travel, and
 * how, in {@link io.weft.spark.columns.ColumnLayout}. Everything here belongs to one task thread.
 * Builders take their memory from a {@link io.weft.spark.columns.BufferPool} that is lent to the
 * task and goes back when its scatter or reader is closed; chunks belong to the map output that
 * they were allocated from; vectors own nothing and are valid until their reader moves on.
 */
package io.weft.spark.columns;
