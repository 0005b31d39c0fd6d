package io.weft.spark.sql;

import java.util.Optional;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.plans.physical.Partitioning;
import org.apache.spark.sql.execution.ColumnarToRowExec;
import org.apache.spark.sql.execution.ShufflePartitionSpec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec;
import org.apache.spark.sql.execution.exchange.ShuffleOrigin;
import org.apache.spark.sql.execution.metric.SQLMetric;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import scala.Option;
import scala.collection.immutable.Map;

/**
 * The exchange of the columns route. It accepts rows or batches and returns batches. The methods
 * for adaptive execution (map statistics, cancellation, runtime statistics, shuffle id) are
 * inherited and use the dependency of this class.
 *
 * <p>Lazy values are created under the node's monitor, like the inherited ones.
 */
public final class WeftShuffleExchangeExec extends RoutedExchangeExec {
  private transient volatile Map<String, SQLMetric> metrics;
  private transient RDD<?> input;
  private transient ColumnarShuffleDependency dependency;

  /** Spark calls this constructor by reflection to copy the node. */
  public WeftShuffleExchangeExec(
      Partitioning partitioning,
      SparkPlan child,
      ShuffleOrigin origin,
      Option<Object> advisoryPartitionSize,
      String reason) {
    super(partitioning, child, origin, advisoryPartitionSize, reason);
  }

  @Override
  public ShuffleExchangeExec copy(
      Partitioning partitioning,
      SparkPlan child,
      ShuffleOrigin origin,
      Option<Object> advisoryPartitionSize) {
    return new WeftShuffleExchangeExec(
        partitioning, child, origin, advisoryPartitionSize, reason());
  }

  @Override
  public String nodeName() {
    return "WeftShuffleExchange";
  }

  @Override
  String remark() {
    return "weft: columns route, " + reason() + (isOnDevices() ? ", blocks on GPUs" : "");
  }

  /** Whether blocks stay on GPUs: the input batches are on GPUs, and nothing prevents the route. */
  boolean isOnDevices() {
    return DeviceRoute.isGiven(child()) && deviceObstacle().isEmpty();
  }

  private Optional<String> deviceObstacle() {
    return DependencyBuilder.rowsObstacle(outputPartitioning(), conf())
        .or(() -> DeviceRoute.obstacle(schema(), outputPartitioning().numPartitions()));
  }

  /** Always true. Spark inserts a conversion where rows are needed. */
  @Override
  public boolean supportsColumnar() {
    return true;
  }

  /** Lock-free after creation, because it is called while a range exchange samples its input. */
  @Override
  public Map<String, SQLMetric> metrics() {
    Map<String, SQLMetric> made = metrics;
    return made == null ? makeMetrics() : made;
  }

  private synchronized Map<String, SQLMetric> makeMetrics() {
    if (metrics == null) {
      metrics = ExchangeMetrics.addTo(super.metrics(), sparkContext(), isOnDevices());
    }
    return metrics;
  }

  /** Returns the child's batches if it is columnar, despite the static type; else its rows. */
  @Override
  @SuppressWarnings("unchecked")
  public synchronized RDD<InternalRow> inputRDD() {
    if (input == null) {
      input = child().supportsColumnar() ? child().executeColumnar() : child().execute();
    }
    return (RDD<InternalRow>) input;
  }

  /**
   * Creates the shuffle on first use. Range partitioning then samples the child with a Spark job.
   */
  synchronized ColumnarShuffleDependency columnarDependency() {
    if (dependency == null) {
      dependency = newDependency();
      ExchangeMetrics.reportPartitions(this, dependency.numPartitions());
    }
    return dependency;
  }

  @SuppressWarnings("unchecked")
  private ColumnarShuffleDependency newDependency() {
    if (DeviceRoute.isGiven(child())) {
      deviceObstacle().ifPresent(DeviceRoute::logReason);
    }
    DependencyBuilder builder =
        new DependencyBuilder(child(), outputPartitioning(), metrics(), reason(), isOnDevices());
    RDD<?> records = inputRDD();
    return child().supportsColumnar()
        ? builder.fromBatches((RDD<ColumnarBatch>) records)
        : builder.fromRows((RDD<InternalRow>) records);
  }

  @Override
  @SuppressWarnings({"unchecked", "rawtypes"})
  public ShuffleDependency<Object, InternalRow, InternalRow> shuffleDependency() {
    return (ShuffleDependency) columnarDependency();
  }

  @Override
  @SuppressWarnings({"unchecked", "rawtypes"})
  public RDD<InternalRow> getShuffleRDD(ShufflePartitionSpec[] specs) {
    return (RDD) new ShuffledBatchRDD(columnarDependency(), metrics(), specs);
  }

  @Override
  public RDD<ColumnarBatch> doExecuteColumnar() {
    return new ShuffledBatchRDD(columnarDependency(), metrics());
  }

  /** For callers that request rows from a columnar node. */
  @Override
  public RDD<InternalRow> doExecute() {
    return session().withActive(() -> new ColumnarToRowExec(this)).execute();
  }
}
