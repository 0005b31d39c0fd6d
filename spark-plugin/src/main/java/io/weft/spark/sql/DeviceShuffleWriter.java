package io.weft.spark.sql;

import io.weft.catalog.BlockKey;
import io.weft.deviceblocks.DeviceOutput;
import io.weft.exchange.ExecutorExchange;
import io.weft.spark.gpu.DeviceBatch;
import io.weft.spark.gpu.DeviceExchange;
import io.weft.spark.gpu.DeviceUnits;
import io.weft.spark.gpu.DeviceUploader;
import io.weft.spark.shuffle.MapWriter;
import io.weft.table.PendingPartitions;
import io.weft.table.TableLayout;
import java.io.IOException;
import org.apache.spark.TaskContext;
import org.apache.spark.shuffle.ShuffleWriteMetricsReporter;
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
  private final DeviceUnits units;
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
    Runnable killCheck = context::killTaskIfInterrupted;
    String name = "shuffle-%d-map-%d".formatted(dependency.shuffleId(), mapId);
    PartitionIds partitions = dependency.partitionIds().orElseThrow();
    this.split = new DeviceSplit(device, partitions, dependency.schema(), name, killCheck);
    freeAtEnd(split::close); // It owns a lane, also if the rest of the constructor fails.
    this.units = new DeviceUnits(device, dependency.numPartitions(), killCheck);
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
}
