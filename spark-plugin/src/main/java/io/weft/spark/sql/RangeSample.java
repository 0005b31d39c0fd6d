package io.weft.spark.sql;

import io.weft.spark.compat.NarrowRDD;
import io.weft.spark.compat.ScalaInterop;
import io.weft.spark.shuffle.RowTarget;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.io.Serializable;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.SplittableRandom;
import org.apache.spark.RangePartitioner$;
import org.apache.spark.TaskContext;
import org.apache.spark.rdd.PartitionPruningRDD;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.AttributeSet$;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.SortOrder;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.plans.physical.RangePartitioning;
import org.apache.spark.sql.execution.CodegenSupport;
import org.apache.spark.sql.execution.DataSourceScanExec;
import org.apache.spark.sql.execution.ProjectExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.WholeStageCodegenExec;
import org.apache.spark.sql.execution.adaptive.AQEShuffleReadExec;
import org.apache.spark.sql.execution.adaptive.QueryStageExec;
import org.apache.spark.sql.execution.columnar.InMemoryTableScanExec;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanExecBase;
import org.apache.spark.sql.execution.exchange.Exchange;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import scala.Tuple2;
import scala.collection.immutable.Seq;
import scala.collection.mutable.ArrayBuffer;
import scala.jdk.javaapi.CollectionConverters;
import scala.math.Ordering;
import scala.runtime.AbstractFunction1;

/**
 * Finds the bounds of range partitions from a sample of the rows, of the size and with the weights
 * of Spark's range partitioner. Other than Spark, it computes keys only for rows in the sample.
 *
 * @param partitions to divide the rows into, at least 1
 * @param orders the sort orders
 * @param output the columns of the rows
 */
record RangeSample(int partitions, List<SortOrder> orders, Seq<Attribute> output)
    implements Serializable {
  private static final double MAX_SAMPLE = 1e6;

  /** The sample is larger than needed, because map partitions may differ in size. */
  private static final double OVERSAMPLING = 3;

  RangeSample {
    orders = List.copyOf(orders);
  }

  /** Whether the keys of a row are the same each time. */
  static boolean isRepeatable(RangePartitioning partitioning) {
    return CollectionConverters.asJava(partitioning.ordering()).stream()
        .allMatch(order -> order.child().deterministic());
  }

  private static RangeSample of(RangePartitioning partitioning, Seq<Attribute> output) {
    return new RangeSample(
        partitioning.numPartitions(), CollectionConverters.asJava(partitioning.ordering()), output);
  }

  /** Samples batches, with one or two Spark jobs on the calling thread. */
  static RangeBounds ofBatches(
      RangePartitioning partitioning, Seq<Attribute> output, RDD<ColumnarBatch> batches) {
    RangeSample sample = of(partitioning, output);
    return sample.bounds(
        batches, output, (elements, reservoir, keyOf) -> takeBatches(elements, reservoir, keyOf));
  }

  /**
   * Samples the rows of a plan, with one or two Spark jobs on the calling thread.
   *
   * @param rows the result of the plan
   * @param stage see {@link RowTarget.Source#stage}
   */
  static RangeBounds ofRows(
      RangePartitioning partitioning, SparkPlan child, RDD<InternalRow> rows, long stage) {
    RangeSample sample = of(partitioning, child.output());
    SparkPlan keys = keysOnly(child, sample.orders());
    long offered = keys == child ? stage : 0;
    return sample.bounds(
        keys == child ? rows : keys.execute(),
        keys.output(),
        (elements, reservoir, keyOf) ->
            new SampledRows(reservoir, keyOf).takeAll(elements, offered));
  }

  /**
   * Drops the columns of a plan that are computed last and that the keys do not need. The rows and
   * their order stay.
   */
  static SparkPlan keysOnly(SparkPlan plan, List<SortOrder> orders) {
    if (!(plan instanceof WholeStageCodegenExec stage)
        || !(stage.child() instanceof ProjectExec project)) {
      return plan;
    }
    AttributeSet needed =
        AttributeSet$.MODULE$.fromAttributeSets(
            ScalaInterop.seq(orders.stream().map(SortOrder::references).toList()));
    List<NamedExpression> all = CollectionConverters.asJava(project.projectList());
    List<NamedExpression> kept =
        all.stream().filter(column -> needed.contains(column.toAttribute())).toList();
    boolean repeatable = all.stream().allMatch(column -> ((Expression) column).deterministic());
    return kept.size() < all.size() && repeatable && isExecutedLazily(project.child())
        // The thread that executes a plan may have no active session, and a new node needs one.
        ? stage
            .session()
            .withActive(
                () ->
                    new WholeStageCodegenExec(
                        new ProjectExec(ScalaInterop.seq(kept), project.child()),
                        stage.codegenStageId()))
        : plan;
  }

  /**
   * Whether executing a plan again runs no job and makes no shuffle. Some nodes do so at each
   * execution, for example a limit of sorted rows.
   */
  private static boolean isExecutedLazily(SparkPlan plan) {
    if (plan instanceof Exchange
        || plan instanceof QueryStageExec
        || plan instanceof AQEShuffleReadExec
        || plan instanceof DataSourceScanExec
        || plan instanceof DataSourceV2ScanExecBase
        || plan instanceof InMemoryTableScanExec) {
      return true;
    }
    return plan instanceof CodegenSupport
        && CollectionConverters.asJava(plan.children()).stream()
            .allMatch(RangeSample::isExecutedLazily);
  }

  private <T> RangeBounds bounds(RDD<T> input, Seq<Attribute> columns, Taking<T> taking) {
    List<UnsafeRow> keys =
        partitions <= 1 || input.getNumPartitions() == 0
            ? List.of()
            : highestKeys(input, columns, taking);
    return new RangeBounds(keys, orders, output);
  }

  private <T> List<UnsafeRow> highestKeys(RDD<T> input, Seq<Attribute> columns, Taking<T> taking) {
    double wanted = SQLConf.get().rangeExchangeSampleSizePerPartition() * (double) partitions;
    wanted = Math.min(wanted, MAX_SAMPLE);
    int limit = (int) Math.ceil(OVERSAMPLING * wanted / input.getNumPartitions());
    List<Sketch> sketches = sketches(input, columns, taking, limit);
    long rows = sketches.stream().mapToLong(Sketch::rows).sum();
    double fraction = Math.min(wanted / Math.max(rows, 1), 1);
    ArrayBuffer<Tuple2<InternalRow, Object>> candidates = new ArrayBuffer<>();
    Set<Object> large = new HashSet<>();
    int largest = 0;
    for (int partition = 0; partition < sketches.size(); partition++) {
      Sketch sketch = sketches.get(partition);
      if (fraction * sketch.rows() > limit) {
        large.add(partition);
        largest = (int) Math.max(largest, Math.ceil(fraction * sketch.rows()));
      } else {
        sketch.addTo(candidates);
      }
    }
    if (!large.isEmpty()) {
      // As many keys of these partitions as of all others.
      RDD<T> some = PartitionPruningRDD.create(input, new Contained(large));
      sketches(some, columns, taking, largest).forEach(sketch -> sketch.addTo(candidates));
    }
    return determineBounds(candidates);
  }

  private List<UnsafeRow> determineBounds(ArrayBuffer<Tuple2<InternalRow, Object>> candidates) {
    Ordering<InternalRow> ordering = RangeBounds.ordering(orders);
    InternalRow[] bounds =
        (InternalRow[])
            RangePartitioner$.MODULE$.determineBounds(
                candidates,
                Math.min(partitions, candidates.size()),
                ordering,
                ScalaInterop.tag(InternalRow.class));
    List<UnsafeRow> keys = new ArrayList<>();
    for (InternalRow bound : bounds) {
      keys.add((UnsafeRow) bound);
    }
    return keys;
  }

  private <T> List<Sketch> sketches(
      RDD<T> input, Seq<Attribute> columns, Taking<T> taking, int limit) {
    Seq<Expression> keys = RangeBounds.keysOf(orders);
    RDD<byte[]> sketches =
        NarrowRDD.over(
            input,
            byte[].class,
            elements -> {
              Reservoir reservoir = new Reservoir(limit, TaskContext.get().partitionId());
              try {
                taking.take(elements, reservoir, UnsafeProjection.create(keys, columns));
              } catch (IOException e) {
                throw new UncheckedIOException("Rows cannot be read for a sample", e);
              }
              Sketch sketch = new Sketch(reservoir.rows(), reservoir.keys());
              return ScalaInterop.seq(sketch.toBytes()).iterator();
            });
    Object results = input.context().runJob(sketches, new Only(), ScalaInterop.tag(byte[].class));
    return Arrays.stream((byte[][]) results).map(Sketch::of).toList();
  }

  /** A reservoir of the keys of rows. */
  private static final class SampledRows extends RowTarget.OfPacked {
    private final Reservoir reservoir;
    private final UnsafeProjection keyOf;

    SampledRows(Reservoir reservoir, UnsafeProjection keyOf) {
      this.reservoir = reservoir;
      this.keyOf = keyOf;
    }

    @Override
    public UnsafeRow write(UnsafeRow row) {
      if (reservoir.isNext()) {
        reservoir.take(keyOf.apply(row).copy());
      } else {
        reservoir.skip(1);
      }
      return null;
    }
  }

  private static void takeBatches(
      scala.collection.Iterator<ColumnarBatch> batches,
      Reservoir reservoir,
      UnsafeProjection keyOf) {
    while (batches.hasNext()) {
      ColumnarBatch batch = batches.next();
      for (int row = 0; row < batch.numRows(); ) {
        long skipped = Math.min(reservoir.toSkip(), batch.numRows() - row);
        reservoir.skip(skipped);
        row += (int) skipped;
        if (row < batch.numRows()) {
          reservoir.take(keyOf.apply(batch.getRow(row++)).copy());
        }
      }
    }
  }

  /** Offers the rows of a map partition to a reservoir. Serialized with the tasks. */
  private interface Taking<T> extends Serializable {
    void take(scala.collection.Iterator<T> elements, Reservoir reservoir, UnsafeProjection keyOf)
        throws IOException;
  }

  /**
   * The sample of a map partition.
   *
   * @param rows of the map partition
   * @param keys of its sampled rows
   */
  private record Sketch(long rows, List<UnsafeRow> keys) {
    /** Adds the keys, each with the number of rows for which it stands. */
    void addTo(ArrayBuffer<Tuple2<InternalRow, Object>> candidates) {
      float weight = (float) ((double) rows / keys.size());
      keys.forEach(key -> candidates.addOne(new Tuple2<>(key, weight)));
    }

    /** The result of a task, which the user's serializer transfers. Kryo cannot create records. */
    byte[] toBytes() {
      ByteArrayOutputStream bytes = new ByteArrayOutputStream();
      try (ObjectOutputStream out = new ObjectOutputStream(bytes)) {
        out.writeLong(rows);
        out.writeInt(keys.size());
        for (UnsafeRow key : keys) {
          key.writeExternal(out);
        }
      } catch (IOException e) {
        throw new UncheckedIOException("A sample cannot be written", e);
      }
      return bytes.toByteArray();
    }

    static Sketch of(byte[] bytes) {
      try (ObjectInputStream in = new ObjectInputStream(new ByteArrayInputStream(bytes))) {
        long rows = in.readLong();
        List<UnsafeRow> keys = new ArrayList<>();
        for (int left = in.readInt(); left > 0; left--) {
          UnsafeRow key = new UnsafeRow();
          key.readExternal(in);
          keys.add(key);
        }
        return new Sketch(rows, keys);
      } catch (IOException | ClassNotFoundException e) {
        throw new IllegalStateException("A task's sample cannot be read", e);
      }
    }
  }

  /** Returns the only element of a map partition. */
  private static final class Only
      extends AbstractFunction1<scala.collection.Iterator<byte[]>, byte[]> implements Serializable {
    private static final long serialVersionUID = 1L;

    @Override
    public byte[] apply(scala.collection.Iterator<byte[]> elements) {
      return elements.next();
    }
  }

  /** Whether a set has an element. */
  private static final class Contained extends scala.runtime.AbstractFunction1<Object, Object>
      implements Serializable {
    private static final long serialVersionUID = 1L;

    private final Set<Object> elements;

    Contained(Set<Object> elements) {
      this.elements = Set.copyOf(elements);
    }

    @Override
    public Object apply(Object element) {
      return elements.contains(element);
    }
  }

  /**
   * Samples rows with equal probability. It draws how many rows to skip instead of a number for
   * each row: algorithm L of Li, "Reservoir-sampling algorithms of time complexity O(n(1 +
   * log(N/n)))" (1994). For one thread.
   */
  static final class Reservoir {
    private final int limit;
    private final SplittableRandom random;
    private final List<UnsafeRow> keys = new ArrayList<>();
    private double threshold = 1;
    private long rows;
    private long next;

    /**
     * @param limit maximum size of the sample, at least 1
     * @param seed for the choice
     */
    Reservoir(int limit, long seed) {
      this.limit = limit;
      this.random = new SplittableRandom(seed);
    }

    /** Rows to skip before the next one of the sample. */
    long toSkip() {
      return next - rows;
    }

    boolean isNext() {
      return next == rows;
    }

    void skip(long count) {
      rows += count;
    }

    /** Takes the key of the next row. */
    void take(UnsafeRow key) {
      if (keys.size() < limit) {
        keys.add(key);
      } else {
        keys.set(random.nextInt(limit), key);
      }
      rows++;
      next = keys.size() < limit ? rows : rows + gap();
    }

    private long gap() {
      threshold *= Math.exp(Math.log(1 - random.nextDouble()) / limit);
      return (long) Math.floor(Math.log(1 - random.nextDouble()) / Math.log1p(-threshold));
    }

    /** Rows so far, in the sample or not. */
    long rows() {
      return rows;
    }

    /** The sample. */
    List<UnsafeRow> keys() {
      return List.copyOf(keys);
    }
  }
}
