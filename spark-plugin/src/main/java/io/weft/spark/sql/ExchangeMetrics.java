package io.weft.spark.sql;

import io.weft.shuffle.fetch.FetchListener;
import io.weft.spark.compat.ScalaInterop;
import io.weft.spark.shuffle.ExchangeDependency;
import io.weft.spark.shuffle.ShuffleBlocks.FetchMetrics;
import java.io.Serializable;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.spark.SparkContext;
import org.apache.spark.shuffle.ShuffleReadMetricsReporter;
import org.apache.spark.sql.execution.SQLExecution;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.metric.SQLMetric;
import org.apache.spark.sql.execution.metric.SQLMetrics;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Metrics of the columns route in addition to Spark's shuffle metrics. They are sent to the tasks
 * with the dependency, and Spark collects them like other accumulators.
 *
 * @param dataSize bytes of the written rows in Spark's row format, which adaptive execution
 *     compares with its broadcast threshold
 * @param batchesWritten batches written
 * @param batchesRead batches passed to the parent node
 * @param ownBytes bytes read in place from the reading executor's own arena
 * @param sameHostBytes bytes read in place from other executors on the host
 * @param inPlaceBytes the sum of both
 * @param deviceTablesWritten written batches that are tables on GPUs; null if all blocks are on
 *     hosts
 * @param deviceTablesRead read batches that are tables on GPUs; null if all blocks are on hosts
 */
record ExchangeMetrics(
    SQLMetric dataSize,
    SQLMetric batchesWritten,
    SQLMetric batchesRead,
    SQLMetric ownBytes,
    SQLMetric sameHostBytes,
    SQLMetric inPlaceBytes,
    SQLMetric deviceTablesWritten,
    SQLMetric deviceTablesRead)
    implements Serializable {
  private static final String DATA_SIZE = "dataSize";
  static final String BATCHES_WRITTEN = "weftBatchesWritten";
  static final String BATCHES_READ = "weftBatchesRead";
  static final String OWN_BYTES = "weftOwnBytesRead";
  static final String SAME_HOST_BYTES = "weftSameHostBytesRead";
  static final String IN_PLACE_BYTES = "weftInPlaceBytesRead";

  static final String DEVICE_TABLES_WRITTEN = "weftDeviceTablesWritten";
  static final String DEVICE_TABLES_READ = "weftDeviceTablesRead";

  /** Initial value, which Spark ignores in the minimum over tasks. */
  private static final long UNSET = -1;

  /**
   * Adds these metrics to Spark's metrics of the node.
   *
   * @param onDevices whether blocks may be on GPUs, which adds their metrics
   */
  static scala.collection.immutable.Map<String, SQLMetric> addTo(
      scala.collection.immutable.Map<String, SQLMetric> sparks,
      SparkContext context,
      boolean onDevices) {
    Map<String, SQLMetric> all = new LinkedHashMap<>(CollectionConverters.asJava(sparks));
    all.put(BATCHES_WRITTEN, SQLMetrics.createMetric(context, ExchangeDependency.BATCHES_WRITTEN));
    all.put(BATCHES_READ, SQLMetrics.createMetric(context, "batches read"));
    all.put(OWN_BYTES, size(context, "bytes in place, own executor"));
    all.put(SAME_HOST_BYTES, size(context, "bytes in place, other executors of the host"));
    all.put(IN_PLACE_BYTES, size(context, "bytes read in place"));
    if (onDevices) {
      all.put(DEVICE_TABLES_WRITTEN, SQLMetrics.createMetric(context, "batches written on GPUs"));
      all.put(DEVICE_TABLES_READ, SQLMetrics.createMetric(context, "batches read on GPUs"));
    }
    return ScalaInterop.map(all);
  }

  private static SQLMetric size(SparkContext context, String name) {
    return SQLMetrics.createSizeMetric(context, name, UNSET);
  }

  /** Returns these metrics from the node's. */
  static ExchangeMetrics of(scala.collection.immutable.Map<String, SQLMetric> metrics) {
    return new ExchangeMetrics(
        metrics.apply(DATA_SIZE),
        metrics.apply(BATCHES_WRITTEN),
        metrics.apply(BATCHES_READ),
        metrics.apply(OWN_BYTES),
        metrics.apply(SAME_HOST_BYTES),
        metrics.apply(IN_PLACE_BYTES),
        metrics.getOrElse(DEVICE_TABLES_WRITTEN, () -> null),
        metrics.getOrElse(DEVICE_TABLES_READ, () -> null));
  }

  /** Reports the number of reduce partitions of an exchange, which is known on the driver. */
  static void reportPartitions(SparkPlan exchange, int partitions) {
    SQLMetric metric = exchange.longMetric("numPartitions");
    metric.set(partitions);
    SparkContext context = exchange.sparkContext();
    String execution = context.getLocalProperty(SQLExecution.EXECUTION_ID_KEY());
    SQLMetrics.postDriverMetricUpdates(context, execution, ScalaInterop.seq(metric));
  }

  /** Counts tables written to a GPU. */
  void writtenOnDevice(long tables) {
    if (deviceTablesWritten != null) {
      deviceTablesWritten.add(tables);
    }
  }

  /** Counts a table read on a GPU. */
  void readOnDevice() {
    if (deviceTablesRead != null) {
      deviceTablesRead.add(1);
    }
  }

  /**
   * Counts the reads of a reduce task, for Spark's shuffle metrics and the node's own metrics. Not
   * thread-safe.
   */
  static final class BatchReadMetrics implements FetchListener {
    private final ShuffleReadMetricsReporter sparks;
    private final FetchMetrics fetches;
    private final ExchangeMetrics ours;

    BatchReadMetrics(ShuffleReadMetricsReporter sparks, ExchangeMetrics ours) {
      this.sparks = sparks;
      this.fetches = new FetchMetrics(sparks, false);
      this.ours = ours;
    }

    @Override
    public void local(int blocks, long bytes) {
      fetches.local(blocks, bytes);
      ours.ownBytes().add(bytes);
      ours.inPlaceBytes().add(bytes);
    }

    @Override
    public void sameHost(int blocks, long bytes) {
      fetches.sameHost(blocks, bytes);
      ours.sameHostBytes().add(bytes);
      ours.inPlaceBytes().add(bytes);
    }

    @Override
    public void remote(int outputs, int blocks, long bytes) {
      fetches.remote(outputs, blocks, bytes);
    }

    @Override
    public void waited(long nanos) {
      fetches.waited(nanos);
    }

    /** Counts a batch passed to the parent node. */
    void batch(int rows) {
      sparks.incRecordsRead(rows);
      ours.batchesRead().add(1);
    }

    /** Counts a batch on the GPU passed to the parent node. */
    void deviceBatch(int rows) {
      batch(rows);
      ours.readOnDevice();
    }
  }
}
