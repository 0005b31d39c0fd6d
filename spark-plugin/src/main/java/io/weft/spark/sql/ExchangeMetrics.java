package io.weft.spark.sql;

import io.weft.shuffle.fetch.FetchListener;
import io.weft.spark.compat.ScalaInterop;
import io.weft.spark.shuffle.ExchangeDependency;
import io.weft.spark.shuffle.InPlaceMetrics;
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
 * @param inPlace bytes read in place
 * @param deviceTablesWritten written batches that are tables on GPUs; null if all blocks are on
 *     hosts
 * @param deviceTablesRead read batches that are tables on GPUs; null if all blocks are on hosts
 */
record ExchangeMetrics(
    SQLMetric dataSize,
    SQLMetric batchesWritten,
    SQLMetric batchesRead,
    InPlaceMetrics inPlace,
    SQLMetric deviceTablesWritten,
    SQLMetric deviceTablesRead)
    implements Serializable {
  private static final String DATA_SIZE = "dataSize";
  static final String BATCHES_WRITTEN = "weftBatchesWritten";
  static final String BATCHES_READ = "weftBatchesRead";
  static final String DEVICE_TABLES_WRITTEN = "weftDeviceTablesWritten";
  static final String DEVICE_TABLES_READ = "weftDeviceTablesRead";

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
    all.putAll(InPlaceMetrics.create(context));
    if (onDevices) {
      all.put(DEVICE_TABLES_WRITTEN, SQLMetrics.createMetric(context, "batches written on GPUs"));
      all.put(DEVICE_TABLES_READ, SQLMetrics.createMetric(context, "batches read on GPUs"));
    }
    return ScalaInterop.map(all);
  }

  /** Returns these metrics from the node's. */
  static ExchangeMetrics of(scala.collection.immutable.Map<String, SQLMetric> metrics) {
    return new ExchangeMetrics(
        metrics.apply(DATA_SIZE),
        metrics.apply(BATCHES_WRITTEN),
        metrics.apply(BATCHES_READ),
        InPlaceMetrics.of(CollectionConverters.asJava(metrics)),
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
    private final FetchListener fetches;
    private final ExchangeMetrics ours;

    BatchReadMetrics(ShuffleReadMetricsReporter sparks, ExchangeMetrics ours) {
      this.sparks = sparks;
      this.fetches = ours.inPlace().counting(new FetchMetrics(sparks, false));
      this.ours = ours;
    }

    @Override
    public void local(int blocks, long bytes) {
      fetches.local(blocks, bytes);
    }

    @Override
    public void sameHost(int blocks, long bytes) {
      fetches.sameHost(blocks, bytes);
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
