package io.weft.spark.sql;

import io.weft.collectives.DataType;
import io.weft.device.Event;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.DeviceUploads;
import io.weft.memory.Memory;
import io.weft.shuffle.ExecutorExchange;
import io.weft.shuffle.device.DeviceCatalog.DeviceOutput;
import io.weft.shuffle.device.DeviceTable;
import io.weft.shuffle.device.PendingPartitions;
import io.weft.shuffle.device.TableLayout;
import io.weft.shuffle.store.BlockKey;
import io.weft.spark.columns.BatchPartitioner;
import io.weft.spark.columns.HashBatchPartitioner;
import io.weft.spark.gpu.DeviceBatch;
import io.weft.spark.gpu.DeviceExchange;
import io.weft.spark.gpu.DeviceUploader;
import io.weft.spark.gpu.TablePacker;
import io.weft.spark.gpu.TableTypes;
import io.weft.spark.shuffle.MapWriter;
import io.weft.spark.sql.PartitionIds.HashIds;
import io.weft.spark.sql.PartitionIds.SingleIds;
import io.weft.tensor.Tensor;
import io.weft.tensor.TensorType;
import java.io.IOException;
import java.util.List;
import java.util.Optional;
import org.apache.spark.TaskContext;
import org.apache.spark.shuffle.ShuffleWriteMetricsReporter;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.util.TaskCompletionListener;
import scala.Product2;
import scala.collection.Iterator;

/**
 * Partitions the batches of one map task on the GPU and keeps the partitions there. Batches on the
 * host are uploaded first. For one task thread.
 *
 * @param <K> unused
 * @param <V> batches
 */
final class DeviceShuffleWriter<K, V> extends MapWriter<K, V> {
  private final ColumnarShuffleDependency dependency;
  private final TaskContext context;
  private final ShuffleWriteMetricsReporter metrics;
  private final DeviceExchange device;
  private final DeviceSplit split;
  private final TablePacker units;
  private final DeviceUploader uploader;
  private long rows;
  private long rowBytes;
  private long tables;

  /** Opens the map output of one task attempt. */
  DeviceShuffleWriter(
      ColumnarShuffleDependency dependency,
      long mapId,
      TaskContext context,
      ShuffleWriteMetricsReporter metrics,
      ExecutorExchange exchange,
      DeviceExchange device) {
    super(
        new BlockKey(dependency.shuffleId(), mapId), dependency.numPartitions(), context, exchange);
    this.dependency = dependency;
    this.context = context;
    this.metrics = metrics;
    this.device = device;
    device.catalog().begin(dependency.shuffleId());
    Runnable killCheck = context::killTaskIfInterrupted;
    String name = "shuffle-%d-map-%d".formatted(dependency.shuffleId(), mapId);
    PartitionIds partitions = dependency.partitionIds().orElseThrow();
    this.split = new DeviceSplit(device, partitions, dependency.schema(), name, killCheck);
    freeAtEnd(split::close); // It owns a lane, also if the rest of the constructor fails.
    this.units = new TablePacker(device, dependency.numPartitions(), killCheck);
    this.uploader =
        new DeviceUploader(
            device,
            dependency.schema(),
            name + "-uploads",
            killCheck,
            table -> {
              try (ColumnarBatch batch = DeviceBatch.columns(device, table, dependency.schema())) {
                add(batch, DeviceBatch.of(batch).orElseThrow());
              }
            });
    freeAtEnd(this::free);
    context.addTaskCompletionListener(
        (TaskCompletionListener)
            ended -> {
              // The driver does not know the output of a failed attempt.
              if (ended.isFailed() || ended.isInterrupted()) {
                device.catalog().remove(key());
              }
            });
  }

  private void free() {
    uploader.close();
    split.close();
    units.close();
  }

  @Override
  public void write(Iterator<Product2<K, V>> records) throws IOException {
    long nanos = 0;
    while (records.hasNext()) {
      ColumnarBatch batch = (ColumnarBatch) records.next()._2();
      context.killTaskIfInterrupted();
      long start = System.nanoTime();
      append(batch);
      nanos += System.nanoTime() - start;
    }
    long start = System.nanoTime();
    uploader.flush();
    device.catalog().publish(new DeviceOutput(key(), units.finish()));
    metrics.incWriteTime(nanos + System.nanoTime() - start);
    metrics.incRecordsWritten(rows);
    metrics.incBytesWritten(writtenBytes());
    dependency.exchangeMetrics().dataSize().add(rowBytes);
    dependency.exchangeMetrics().batchesWritten().add(tables);
    dependency.exchangeMetrics().writtenOnDevice(tables);
  }

  /** Keeps the order of rows, because partitions may depend on it. */
  private void append(ColumnarBatch batch) throws IOException {
    var onDevice = DeviceBatch.of(batch, dependency.schema());
    if (onDevice.isEmpty()) {
      int row = 0;
      while (row < batch.numRows()) {
        row = uploader.append(batch, row);
      }
    } else {
      uploader.flush();
      add(batch, onDevice.get());
    }
  }

  private void add(ColumnarBatch batch, DeviceBatch onDevice) {
    if (batch.numRows() == 0) {
      return;
    }
    TableLayout layout = onDevice.table().layout();
    try (PendingPartitions pending = split.split(batch, onDevice)) {
      units.pack(pending, layout.bytes());
    }
    rows += layout.rows();
    rowBytes += RowBytes.of(layout, dependency.schema());
    tables++;
  }

  @Override
  protected long[] partitionBytes() {
    return units.bytes();
  }

  /**
   * Partitions the batches of a map task on the GPU. The GPU computes Spark's hash if it supports
   * the key columns; otherwise the host computes the partitions. For one task thread.
   */
  static final class DeviceSplit implements AutoCloseable {
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
                device
                    .partitioner()
                    .byHash(uploads.lane(), table, keys, partitions.numPartitions()));
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
}
