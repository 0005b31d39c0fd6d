package io.weft.spark.sql;

import io.weft.collectives.buffer.DataType;
import io.weft.device.Event;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.DeviceUploads;
import io.weft.memory.Memory;
import io.weft.spark.columns.BatchPartitioner;
import io.weft.spark.columns.HashBatchPartitioner;
import io.weft.spark.gpu.DeviceBatch;
import io.weft.spark.gpu.DeviceExchange;
import io.weft.spark.gpu.TableTypes;
import io.weft.table.DeviceTable;
import io.weft.table.PendingPartitions;
import io.weft.tensor.Tensor;
import io.weft.tensor.TensorType;
import java.util.List;
import java.util.Optional;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/**
 * Partitions the batches of a map task on the GPU. The GPU computes Spark's hash if it supports the
 * key columns; otherwise the host computes the partitions. For one task thread.
 */
final class DeviceSplit implements AutoCloseable {
  private final DeviceExchange device;
  private final PartitionIds partitions;
  private final Runnable killCheck;
  private final DeviceUploads uploads;

  /** Indexes of the hashed columns; null if the host computes partitions. */
  private final int[] keys;

  private final BatchPartitioner onHost;

  /**
   * Creates a split without batches.
   *
   * @param name of the lane
   * @param killCheck called while it waits; throws if the task was killed
   */
  DeviceSplit(
      DeviceExchange device,
      PartitionIds partitions,
      StructType schema,
      String name,
      Runnable killCheck) {
    this.device = device;
    this.partitions = partitions;
    this.killCheck = killCheck;
    this.keys = keys(partitions, schema).orElse(null);
    this.onHost = keys == null ? partitions.open() : null;
    this.uploads = device.gpu().uploads(name);
  }

  /** Returns the indexes of the columns that the GPU hashes, in order; empty if it cannot. */
  static Optional<int[]> keys(PartitionIds partitions, StructType schema) {
    if (partitions instanceof SingleIds) {
      return Optional.of(new int[0]);
    }
    if (!(partitions instanceof HashIds hash)) {
      return Optional.empty();
    }
    return HashBatchPartitioner.plainColumns(hash.partitioning(), hash.output())
        .filter(
            columns -> {
              for (int column : columns) {
                if (!TableTypes.isKey(schema.fields()[column])) {
                  return false;
                }
              }
              return true;
            });
  }

  /**
   * Starts to partition a batch.
   *
   * @return the pending partitions; the caller packs and closes them
   */
  PendingPartitions split(ColumnarBatch batch, DeviceBatch onDevice) {
    DeviceTable table = onDevice.table();
    if (keys != null) {
      return device.withRoom(
          scratchBytes(table),
          killCheck,
          () ->
              device.partitioner().byHash(uploads.lane(), table, keys, partitions.numPartitions()));
    }
    int[] ids = new int[batch.numRows()];
    onHost.partitionIds(batch, ids);
    return byIds(table, ids);
  }

  private PendingPartitions byIds(DeviceTable table, int[] ids) {
    long bytes = 4L * ids.length;
    try (Tensor host = Tensor.allocate(TensorType.of(DataType.INT32, ids.length));
        CudaMemory there = device.take(Math.max(1, bytes), killCheck)) {
      for (int row = 0; row < ids.length; row++) {
        Memory.putInt(host.address() + 4L * row, ids[row]);
      }
      DeviceUploads.Run run = new DeviceUploads.Run(host.address(), 0, bytes);
      Event uploaded = uploads.upload("the upload of partitions", List.of(run), there);
      uploaded.awaitRecorded(device.deadline());
      return device.withRoom(
          scratchBytes(table),
          killCheck,
          () ->
              device
                  .partitioner()
                  .byIds(uploads.lane(), table, there, partitions.numPartitions(), uploaded));
    }
  }

  /** Estimates the memory of partitioning, without the result. */
  private static long scratchBytes(DeviceTable table) {
    return 24L * Math.max(1, table.rows());
  }

  /** Waits for operations in progress. Idempotent. */
  @Override
  public void close() {
    uploads.close();
  }
}
