package io.weft.spark.sql;

import java.io.Serializable;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.execution.metric.SQLMetric;
import org.apache.spark.sql.execution.metric.SQLMetrics;
import scala.jdk.javaapi.CollectionConverters;

/**
 * What the columns route counts beside Spark's own shuffle metrics; travels to the tasks with the
 * dependency, where Spark collects it like any accumulator.
 *
 * @param dataSize bytes the written rows would take as Spark's own rows: what adaptive execution
 *     compares with its broadcast threshold
 * @param batchesWritten batches put into the arena
 * @param batchesRead batches handed to the plan above
 * @param ownBytes bytes read in place from the reading executor's own arena
 * @param sameHostBytes bytes read in place from other executors on the host
 * @param inPlaceBytes the sum of both
 * @param deviceTablesWritten those of the batches written that are tables on GPUs; null where all
 *     blocks lie on hosts
 * @param deviceTablesRead those of the batches read, or null likewise
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

  /** What Spark leaves out when it shows the minimum over the tasks. */
  private static final long UNSET = -1;

  /**
   * Spark's metrics of the node with ours added, as the node's {@code metrics} shows them.
   *
   * @param onDevices whether blocks may lie on GPUs, which is counted then
   */
  static scala.collection.immutable.Map<String, SQLMetric> addTo(
      scala.collection.immutable.Map<String, SQLMetric> sparks,
      SparkContext context,
      boolean onDevices) {
    Map<String, SQLMetric> all = new LinkedHashMap<>(CollectionConverters.asJava(sparks));
    all.put(BATCHES_WRITTEN, SQLMetrics.createMetric(context, "batches written"));
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

  /** The metrics the tasks report to, out of the node's. */
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

  /** Tables were written to a GPU. */
  void writtenOnDevice(long tables) {
    if (deviceTablesWritten != null) {
      deviceTablesWritten.add(tables);
    }
  }

  /** A table that lies on a GPU was read. */
  void readOnDevice() {
    if (deviceTablesRead != null) {
      deviceTablesRead.add(1);
    }
  }
}
