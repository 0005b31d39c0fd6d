package io.weft.spark.sql;

/**
 * A plan node whose batches are on the GPU of its executor, if the executor has one: see {@link
 * io.weft.spark.gpu.DeviceBatch}.
 */
interface GivesDeviceBatches {}
