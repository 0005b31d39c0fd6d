package io.weft.spark.sql;

import io.weft.shuffle.ExecutorExchange;
import io.weft.spark.compat.PortableDependency;
import io.weft.spark.gpu.DeviceExchange;
import io.weft.spark.shuffle.BlockSizes;
import io.weft.spark.shuffle.ExchangeDependency;
import io.weft.spark.shuffle.ShuffleBlocks;
import io.weft.spark.shuffle.ShuffleRoutes.RouteTaken;
import io.weft.spark.sql.DeviceRoute.TaskDevice;
import java.util.Optional;
import org.apache.spark.TaskContext;
import org.apache.spark.rdd.RDD;
import org.apache.spark.shuffle.ShuffleReadMetricsReporter;
import org.apache.spark.shuffle.ShuffleReader;
import org.apache.spark.shuffle.ShuffleWriteMetricsReporter;
import org.apache.spark.shuffle.ShuffleWriteProcessor;
import org.apache.spark.shuffle.ShuffleWriter;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import scala.Product2;

/**
 * A shuffle of the columns route. Its map side supplies either whole batches, whose rows the writer
 * assigns to partitions by {@link #partitionIds()}, or rows with their partition as the key. Its
 * reduce side returns batches.
 *
 * <p>Immutable. Created on the driver and sent to every task of both sides.
 */
public final class ColumnarShuffleDependency extends PortableDependency<ColumnarBatch>
    implements ExchangeDependency {
  private final StructType schema;
  private final PartitionIds partitionIds;
  private final ExchangeMetrics exchangeMetrics;
  private final boolean onDevices;
  private final String reason;

  /**
   * @param records records of the map side: (unused, batch) with {@code partitionIds}, else
   *     (partition, row) despite the static type
   * @param partitions number of reduce partitions
   * @param partitionIds how to partition batches; null if the records are rows
   * @param schema the columns of the rows or batches, in order
   * @param processor runs the writer in a map task
   * @param exchangeMetrics metrics that the tasks update
   * @param onDevices whether blocks stay on GPUs if executors have them; only with {@code
   *     partitionIds}
   * @param reason why batches are exchanged, as a clause
   * @param rowChecksums what Spark does with the checksums of rows; none with {@code onDevices}
   */
  ColumnarShuffleDependency(
      RDD<? extends Product2<Object, ColumnarBatch>> records,
      int partitions,
      PartitionIds partitionIds,
      StructType schema,
      ShuffleWriteProcessor processor,
      ExchangeMetrics exchangeMetrics,
      boolean onDevices,
      String reason,
      RowChecksumMode rowChecksums) {
    super(records, partitions, schema.size(), processor, ColumnarBatch.class, rowChecksums);
    this.schema = schema;
    this.partitionIds = partitionIds;
    this.exchangeMetrics = exchangeMetrics;
    this.onDevices = onDevices;
    this.reason = reason;
  }

  @Override
  public RouteTaken route() {
    return new RouteTaken(onDevices ? "columns on GPUs" : "columns", reason, numPartitions());
  }

  /** The columns, in order. */
  public StructType schema() {
    return schema;
  }

  /** How the rows of a batch are assigned to partitions; empty if the map side supplies rows. */
  Optional<PartitionIds> partitionIds() {
    return Optional.ofNullable(partitionIds);
  }

  ExchangeMetrics exchangeMetrics() {
    return exchangeMetrics;
  }

  @Override
  public <K, V> ShuffleWriter<K, V> newWriter(
      long mapId,
      TaskContext context,
      ShuffleWriteMetricsReporter metrics,
      ExecutorExchange exchange,
      BlockSizes sizes) {
    Optional<DeviceExchange> device = onDevices ? TaskDevice.find() : Optional.empty();
    return device.isPresent()
        ? new DeviceShuffleWriter<>(this, mapId, context, metrics, exchange, device.get())
        : new ColumnarShuffleWriter<>(this, mapId, context, metrics, exchange, sizes);
  }

  @Override
  public <K, C> ShuffleReader<K, C> newReader(
      ShuffleBlocks blocks,
      TaskContext context,
      ShuffleReadMetricsReporter metrics,
      ExecutorExchange exchange) {
    return onDevices
        ? new DeviceShuffleReader<>(this, blocks, context, metrics, exchange)
        : new ColumnarShuffleReader<>(this, blocks, context, metrics, exchange);
  }

  /** Number of reduce partitions. */
  public int numPartitions() {
    return partitioner().numPartitions();
  }
}
