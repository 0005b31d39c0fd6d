package io.weft.spark.sql;

import io.weft.spark.compat.NarrowRDD;
import io.weft.spark.compat.PortableDependency.RowChecksumMode;
import io.weft.spark.compat.SparkFeatures;
import io.weft.spark.sql.PartitionIds.HashIds;
import io.weft.spark.sql.PartitionIds.RangeIds;
import io.weft.spark.sql.PartitionIds.RoundRobinIds;
import io.weft.spark.sql.PartitionIds.SingleIds;
import java.util.Optional;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning;
import org.apache.spark.sql.catalyst.plans.physical.Partitioning;
import org.apache.spark.sql.catalyst.plans.physical.RangePartitioning;
import org.apache.spark.sql.catalyst.plans.physical.RoundRobinPartitioning;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.UnsafeRowSerializer;
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec$;
import org.apache.spark.sql.execution.metric.SQLMetric;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import scala.Product2;
import scala.Tuple2;
import scala.collection.immutable.Map;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Creates the dependency of an exchange. Batches stay whole if their partitioning can be computed
 * from columns. Otherwise Spark's own preparation supplies rows with their partition, and the
 * writer builds columns from rows.
 *
 * @param child input of the exchange
 * @param partitioning partitioning of the exchange's output
 * @param metrics the metrics of the node
 * @param reason why batches are exchanged, as a clause
 * @param onDevices whether blocks of batches stay on GPUs if executors have them
 */
record DependencyBuilder(
    SparkPlan child,
    Partitioning partitioning,
    Map<String, SQLMetric> metrics,
    String reason,
    boolean onDevices) {

  /** May run a Spark job on the calling thread: range partitioning samples its input. */
  ColumnarShuffleDependency fromBatches(RDD<ColumnarBatch> batches) {
    Optional<PartitionIds> ids = partitionIds(batches);
    return ids.isPresent() ? overBatches(batches, ids.get()) : fromRows(unsafeRows(batches));
  }

  /** May run a Spark job on the calling thread: range partitioning samples its input. */
  ColumnarShuffleDependency fromRows(RDD<InternalRow> rows) {
    if (!RowsExchangeExec.improves(partitioning, child.output(), SQLConf.get())) {
      return fromSparks(rows);
    }
    if (partitioning instanceof RangePartitioning range) {
      RangeBounds bounds = RangeSample.ofRows(range, child, rows, 0);
      return dependency(erased(bounds.partitioned(rows, 0)), bounds.numPartitions(), null);
    }
    int partitions = partitioning.numPartitions();
    return partitioning instanceof HashPartitioning hash
        ? dependency(
            erased(PartitionedRows.byHash(rows, hash, child.output(), 0)), partitions, null)
        : dependency(erased(DealtRows.of(rows, partitions, 0)), partitions, null);
  }

  /** Rows that Spark partitions. */
  private ColumnarShuffleDependency fromSparks(RDD<InternalRow> rows) {
    ShuffleDependency<Object, InternalRow, InternalRow> sparks =
        ShuffleExchangeExec$.MODULE$.prepareShuffleDependency(
            rows,
            child.output(),
            partitioning,
            new UnsafeRowSerializer(child.output().size(), null),
            metrics);
    return dependency(erased(sparks.rdd()), sparks.partitioner().numPartitions(), null);
  }

  private ColumnarShuffleDependency overBatches(RDD<ColumnarBatch> batches, PartitionIds ids) {
    NarrowRDD.PartitionFunction<ColumnarBatch, Product2<Object, ColumnarBatch>> pairs =
        elements -> elements.map(batch -> new Tuple2<>(0, batch));
    RDD<Product2<Object, ColumnarBatch>> records =
        ids.orderSensitive()
            ? NarrowRDD.orderSensitive(batches, Product2.class, pairs)
            : NarrowRDD.over(batches, Product2.class, pairs);
    return dependency(records, ids.numPartitions(), ids);
  }

  private ColumnarShuffleDependency dependency(
      RDD<Product2<Object, ColumnarBatch>> records, int partitions, PartitionIds ids) {
    boolean there = onDevices && ids != null;
    return new ColumnarShuffleDependency(
        records,
        partitions,
        ids,
        child.schema(),
        ShuffleExchangeExec$.MODULE$.createShuffleWriteProcessor(metrics),
        ExchangeMetrics.of(metrics),
        there,
        reason,
        there ? RowChecksumMode.NONE : SparkFeatures.rowChecksums(SQLConf.get()));
  }

  /** Returns why batches are converted to rows before partitioning; empty if they are not. */
  static Optional<String> rowsObstacle(Partitioning partitioning, SQLConf conf) {
    return RowsExchangeExec.sorts(partitioning, conf)
        ? Optional.of("a repartition orders rows first (spark.sql.execution.sortBeforeRepartition)")
        : Optional.empty();
  }

  private Optional<PartitionIds> partitionIds(RDD<ColumnarBatch> batches) {
    if (partitioning.numPartitions() == 1) {
      return Optional.of(new SingleIds());
    }
    if (partitioning instanceof HashPartitioning hash) {
      return Optional.of(new HashIds(hash, child.output()));
    }
    if (partitioning instanceof RangePartitioning range) {
      return Optional.of(new RangeIds(RangeSample.ofBatches(range, child.output(), batches)));
    }
    if (partitioning instanceof RoundRobinPartitioning
        && rowsObstacle(partitioning, SQLConf.get()).isEmpty()) {
      return Optional.of(new RoundRobinIds(partitioning.numPartitions()));
    }
    return Optional.empty();
  }

  /**
   * Converts batches to rows in Spark's packed format, which a repartition without keys requires.
   */
  private RDD<InternalRow> unsafeRows(RDD<ColumnarBatch> batches) {
    StructType schema = child.schema();
    return NarrowRDD.over(
        batches,
        InternalRow.class,
        elements -> {
          UnsafeProjection projection = UnsafeProjection.create(schema);
          return elements.flatMap(
              batch ->
                  CollectionConverters.asScala(batch.rowIterator())
                      .map(row -> (InternalRow) projection.apply(row)));
        });
  }

  /** Casts the records. The dependency carries rows or batches, but its type says batches. */
  @SuppressWarnings({"unchecked", "rawtypes"})
  private static RDD<Product2<Object, ColumnarBatch>> erased(RDD<?> records) {
    return (RDD) records;
  }
}
