package io.weft.spark.sql;

/**
 * A plan node whose batches lie on the GPU of the executor that runs it, wherever there is one: see
 * {@link io.weft.spark.gpu.DeviceBatch}.
 */
interface GivesDeviceBatches {}
