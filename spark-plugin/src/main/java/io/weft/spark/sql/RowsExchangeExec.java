package io.weft.spark.sql;

import io.weft.spark.columns.HashRowPartitioner;
import io.weft.spark.compat.RowDependency;
import io.weft.spark.shuffle.WeftShuffleManager;
import java.util.Optional;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.SparkEnv;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning;
import org.apache.spark.sql.catalyst.plans.physical.Partitioning;
import org.apache.spark.sql.catalyst.plans.physical.RangePartitioning;
import org.apache.spark.sql.catalyst.plans.physical.RoundRobinPartitioning;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec;
import org.apache.spark.sql.execution.exchange.ShuffleOrigin;
import org.apache.spark.sql.internal.SQLConf;
import scala.Option;
import scala.Product2;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractPartialFunction;

/**
 * Spark's exchange of rows, with another way to partition them: a repartition without keys deals
 * rows by their hashes instead of sorting them, ranges are sampled and searched faster, and hashes
 * of keys need no generated code, or are computed by the code that writes the rows: see {@link
 * DirectStage}. Everything else is Spark's.
 *
 * <p>Lazy values are created under the node's monitor, like the inherited ones.
 */
public final class RowsExchangeExec extends RoutedExchangeExec {
  /** With more partitions, most of them begin in the middle of a count of hashes. */
  private static final int MAX_PARTITIONS = 1 << 16;

  private transient ShuffleDependency<Object, InternalRow, InternalRow> dependency;

  /** Written under the monitor, which the plan's text does not wait for. */
  private transient volatile Optional<DirectStage> stage;

  private transient RDD<InternalRow> input;

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
  static boolean improves(Partitioning partitioning, Seq<Attribute> output, SQLConf conf) {
    if (partitioning.numPartitions() > MAX_PARTITIONS) {
      return false;
    }
    if (partitioning instanceof HashPartitioning hash) {
      return HashRowPartitioner.of(hash, output).isPresent();
    }
    return partitioning instanceof RangePartitioning range
        ? RangeSample.isRepeatable(range)
        : sorts(partitioning, conf);
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
    return "weft: " + (reason().isEmpty() ? way() : "no columns route, " + reason() + ", " + way());
  }

  private String way() {
    if (outputPartitioning() instanceof HashPartitioning) {
      return hasDirectStage() ? "written by generated code" : "keys hashed by Weft";
    }
    return outputPartitioning() instanceof RangePartitioning
        ? "ranges by prefixes of keys"
        : "rows dealt by hash";
  }

  /** Known once the exchange has begun. */
  private boolean hasDirectStage() {
    Optional<DirectStage> known = stage;
    return known != null && known.isPresent() && !known.get().isUnused();
  }

  @Override
  public synchronized ShuffleDependency<Object, InternalRow, InternalRow> shuffleDependency() {
    if (dependency == null) {
      dependency = newDependency();
      ExchangeMetrics.reportPartitions(this, dependency.partitioner().numPartitions());
    }
    return dependency;
  }

  /** The stage that writes the rows of the child straight into chunks, if it can. */
  private synchronized Optional<DirectStage> stage() {
    if (stage == null) {
      stage = isCarriedByWeft() ? DirectStage.of(child(), outputPartitioning()) : Optional.empty();
    }
    return stage;
  }

  /** Weft may have been switched off since it made the plan. */
  private static boolean isCarriedByWeft() {
    SparkEnv environment = SparkEnv.get();
    return environment != null
        && environment.shuffleManager() instanceof WeftShuffleManager manager
        && manager.carriesRows();
  }

  @Override
  public synchronized RDD<InternalRow> inputRDD() {
    if (input == null) {
      input = stage().map(SparkPlan::execute).orElseGet(super::inputRDD);
    }
    return input;
  }

  private ShuffleDependency<Object, InternalRow, InternalRow> newDependency() {
    RDD<InternalRow> rows = inputRDD();
    long key = stage().map(DirectStage::key).orElse(0L);
    if (outputPartitioning() instanceof RangePartitioning range) {
      RangeBounds bounds = RangeSample.ofRows(range, child(), rows, key);
      return RowDependency.of(this, rows, bounds.partitioned(rows, key), bounds.numPartitions());
    }
    int partitions = outputPartitioning().numPartitions();
    RDD<Product2<Object, InternalRow>> records =
        outputPartitioning() instanceof HashPartitioning hash
            ? PartitionedRows.byHash(rows, hash, child().output(), key)
            : DealtRows.of(rows, partitions, key);
    return RowDependency.of(this, rows, records, partitions);
  }

  /**
   * Replaces exchanges on the rows route by this node where it partitions faster. It runs after
   * Spark has inserted conversions, so that earlier rules see Spark's own node. Other plugins'
   * rules for that step run later and see this one.
   */
  static final class FasterPartitioning extends Rule<SparkPlan> {
    @Override
    public SparkPlan apply(SparkPlan plan) {
      return plan.transformUp(
          new AbstractPartialFunction<SparkPlan, SparkPlan>() {
            @Override
            public boolean isDefinedAt(SparkPlan node) {
              return WeftExchangeRule.gaveRows(node)
                  && improves(
                      node.outputPartitioning(),
                      ((ShuffleExchangeExec) node).child().output(),
                      node.conf());
            }

            @Override
            public SparkPlan apply(SparkPlan node) {
              return replacement((ShuffleExchangeExec) node);
            }
          });
    }

    private static SparkPlan replacement(ShuffleExchangeExec exchange) {
      return new RowsExchangeExec(
          exchange.outputPartitioning(),
          exchange.child(),
          exchange.shuffleOrigin(),
          exchange.advisoryPartitionSize(),
          exchange instanceof RemarkedExchangeExec remarked ? remarked.reason() : "");
    }
  }
}
