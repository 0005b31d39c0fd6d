package io.weft.spark.sql;

import io.weft.spark.compat.RowDependency;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.plans.physical.Partitioning;
import org.apache.spark.sql.catalyst.plans.physical.RangePartitioning;
import org.apache.spark.sql.catalyst.plans.physical.RoundRobinPartitioning;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec;
import org.apache.spark.sql.execution.exchange.ShuffleOrigin;
import org.apache.spark.sql.internal.SQLConf;
import scala.Option;

/**
 * Spark's exchange of rows, with another way to partition them: a repartition without keys deals
 * rows by their hashes instead of sorting them, and ranges are sampled and searched faster.
 * Everything else is Spark's.
 *
 * <p>Lazy values are created under the node's monitor, like the inherited ones.
 */
public final class RowsExchangeExec extends RoutedExchangeExec {
  /** With more partitions, most of them begin in the middle of a count of hashes. */
  private static final int MAX_PARTITIONS = 1 << 16;

  private transient ShuffleDependency<Object, InternalRow, InternalRow> dependency;

  /** Spark calls this constructor by reflection to copy the node. */
  public RowsExchangeExec(
      Partitioning partitioning,
      SparkPlan child,
      ShuffleOrigin origin,
      Option<Object> advisoryPartitionSize,
      String reason) {
    super(partitioning, child, origin, advisoryPartitionSize, reason);
  }

  /** Whether this node partitions the rows of an exchange faster than Spark. */
  static boolean improves(Partitioning partitioning, SQLConf conf) {
    boolean known =
        partitioning instanceof RangePartitioning range
            ? RangeSample.isRepeatable(range)
            : sorts(partitioning, conf);
    return known && partitioning.numPartitions() <= MAX_PARTITIONS;
  }

  /** Whether Spark sorts rows before it partitions them. */
  static boolean sorts(Partitioning partitioning, SQLConf conf) {
    return partitioning instanceof RoundRobinPartitioning
        && partitioning.numPartitions() > 1
        && conf.sortBeforeRepartition();
  }

  @Override
  public ShuffleExchangeExec copy(
      Partitioning partitioning,
      SparkPlan child,
      ShuffleOrigin origin,
      Option<Object> advisoryPartitionSize) {
    return new RowsExchangeExec(partitioning, child, origin, advisoryPartitionSize, reason());
  }

  @Override
  String remark() {
    boolean ranges = outputPartitioning() instanceof RangePartitioning;
    String way = ranges ? "ranges by prefixes of keys" : "rows dealt by hash";
    return "weft: " + (reason().isEmpty() ? way : "no columns route, " + reason() + ", " + way);
  }

  @Override
  public synchronized ShuffleDependency<Object, InternalRow, InternalRow> shuffleDependency() {
    if (dependency == null) {
      dependency =
          outputPartitioning() instanceof RangePartitioning range
              ? ranges(range, inputRDD())
              : dealt(outputPartitioning().numPartitions());
      ExchangeMetrics.reportPartitions(this, dependency.partitioner().numPartitions());
    }
    return dependency;
  }

  private ShuffleDependency<Object, InternalRow, InternalRow> ranges(
      RangePartitioning range, RDD<InternalRow> rows) {
    RangeBounds bounds = RangeSample.ofRows(range, child(), rows);
    return RowDependency.of(this, rows, bounds.partitioned(rows), bounds.numPartitions());
  }

  private ShuffleDependency<Object, InternalRow, InternalRow> dealt(int partitions) {
    RDD<InternalRow> rows = inputRDD();
    return RowDependency.of(this, rows, DealtRows.of(rows, partitions), partitions);
  }
}
