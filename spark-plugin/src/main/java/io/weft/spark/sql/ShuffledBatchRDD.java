package io.weft.spark.sql;

import io.weft.spark.compat.ScalaInterop;
import java.util.Arrays;
import java.util.stream.IntStream;
import org.apache.spark.Dependency;
import org.apache.spark.MapOutputTrackerMaster;
import org.apache.spark.Partition;
import org.apache.spark.Partitioner;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext;
import org.apache.spark.rdd.RDD;
import org.apache.spark.shuffle.ShuffleReader;
import org.apache.spark.sql.execution.CoalescedMapperPartitionSpec;
import org.apache.spark.sql.execution.CoalescedPartitionSpec;
import org.apache.spark.sql.execution.CoalescedPartitioner;
import org.apache.spark.sql.execution.PartialMapperPartitionSpec;
import org.apache.spark.sql.execution.PartialReducerPartitionSpec;
import org.apache.spark.sql.execution.ShufflePartitionSpec;
import org.apache.spark.sql.execution.metric.SQLMetric;
import org.apache.spark.sql.execution.metric.SQLShuffleReadMetricsReporter;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import scala.Option;
import scala.Product2;
import scala.collection.Iterator;
import scala.collection.immutable.Map;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The reduce side of a columns shuffle, with the partition specs of the plan: single reduce
 * partitions, coalesced ones, parts of a skewed one, or the partitions of one map output.
 */
final class ShuffledBatchRDD extends RDD<ColumnarBatch> {
  private ColumnarShuffleDependency dependency;
  private final Map<String, SQLMetric> metrics;
  private final transient ShuffledBatchPartition[] arrangement;
  private final transient Option<Partitioner> arrangedPartitioner;

  /** Creates an RDD with one partition per reduce partition. */
  ShuffledBatchRDD(ColumnarShuffleDependency dependency, Map<String, SQLMetric> metrics) {
    this(dependency, metrics, oneByOne(dependency.numPartitions()));
  }

  ShuffledBatchRDD(
      ColumnarShuffleDependency dependency,
      Map<String, SQLMetric> metrics,
      ShufflePartitionSpec[] specs) {
    super(dependency.rdd().context(), ScalaInterop.seq(), ScalaInterop.tag(ColumnarBatch.class));
    this.dependency = dependency;
    this.metrics = metrics;
    this.arrangement =
        IntStream.range(0, specs.length)
            .mapToObj(index -> ShuffledBatchPartition.of(index, specs[index]))
            .toArray(ShuffledBatchPartition[]::new);
    this.arrangedPartitioner = partitionerOf(dependency, specs);
  }

  private static ShufflePartitionSpec[] oneByOne(int partitions) {
    return IntStream.range(0, partitions)
        .mapToObj(partition -> new CoalescedPartitionSpec(partition, partition + 1, Option.empty()))
        .toArray(ShufflePartitionSpec[]::new);
  }

  /** Known only if every task reads whole reduce partitions and no partition is read twice. */
  private static Option<Partitioner> partitionerOf(
      ColumnarShuffleDependency dependency, ShufflePartitionSpec[] specs) {
    int[] starts =
        Arrays.stream(specs)
            .filter(CoalescedPartitionSpec.class::isInstance)
            .mapToInt(spec -> ((CoalescedPartitionSpec) spec).startReducerIndex())
            .toArray();
    boolean whole = starts.length == specs.length;
    boolean distinct = Arrays.stream(starts).distinct().count() == specs.length;
    return whole && distinct
        ? Option.apply(new CoalescedPartitioner(dependency.partitioner(), starts))
        : Option.empty();
  }

  @Override
  public Seq<Dependency<?>> getDependencies() {
    return ScalaInterop.seq((Dependency<?>) dependency);
  }

  @Override
  public Option<Partitioner> partitioner() {
    // Tasks do not need it, so it is not serialized.
    return arrangedPartitioner == null ? Option.empty() : arrangedPartitioner;
  }

  @Override
  public Partition[] getPartitions() {
    return arrangement.clone();
  }

  @Override
  public Seq<String> getPreferredLocations(Partition split) {
    MapOutputTrackerMaster tracker = (MapOutputTrackerMaster) SparkEnv.get().mapOutputTracker();
    ShuffledBatchPartition.Blocks blocks = ((ShuffledBatchPartition) split).blocks();
    if (!blocks.allMaps()) {
      return tracker.getMapLocation(dependency, blocks.startMap(), blocks.endMap()).toSeq();
    }
    return ScalaInterop.seq(
        IntStream.range(blocks.startReduce(), blocks.endReduce())
            .mapToObj(reducer -> tracker.getPreferredLocationsForShuffle(dependency, reducer))
            .flatMap(locations -> CollectionConverters.asJava(locations).stream())
            .toList());
  }

  @Override
  public Iterator<ColumnarBatch> compute(Partition split, TaskContext context) {
    ShuffledBatchPartition.Blocks blocks = ((ShuffledBatchPartition) split).blocks();
    SQLShuffleReadMetricsReporter reporter =
        new SQLShuffleReadMetricsReporter(
            context.taskMetrics().createTempShuffleReadMetrics(), metrics);
    ShuffleReader<Object, ColumnarBatch> reader =
        SparkEnv.get()
            .shuffleManager()
            .getReader(
                dependency.shuffleHandle(),
                blocks.startMap(),
                blocks.endMap(),
                blocks.startReduce(),
                blocks.endReduce(),
                context,
                reporter);
    return reader.read().map(Product2::_2);
  }

  @Override
  public void clearDependencies() {
    super.clearDependencies();
    dependency = null;
  }

  /**
   * A partition of a {@link ShuffledBatchRDD}: the blocks of a range of map outputs and a range of
   * reduce partitions.
   *
   * @param index position in the RDD
   * @param blocks the blocks that it reads
   */
  record ShuffledBatchPartition(int index, Blocks blocks) implements Partition {

    /**
     * Map outputs [startMap, endMap) by reduce partitions [startReduce, endReduce). All map outputs
     * are [0, {@link Integer#MAX_VALUE}).
     */
    record Blocks(int startMap, int endMap, int startReduce, int endReduce)
        implements java.io.Serializable {
      boolean allMaps() {
        return startMap == 0 && endMap == Integer.MAX_VALUE;
      }
    }

    static ShuffledBatchPartition of(int index, ShufflePartitionSpec spec) {
      return new ShuffledBatchPartition(index, blocks(spec));
    }

    private static Blocks blocks(ShufflePartitionSpec spec) {
      if (spec instanceof CoalescedPartitionSpec s) {
        return new Blocks(0, Integer.MAX_VALUE, s.startReducerIndex(), s.endReducerIndex());
      }
      if (spec instanceof PartialReducerPartitionSpec s) {
        int reducer = s.reducerIndex();
        return new Blocks(s.startMapIndex(), s.endMapIndex(), reducer, reducer + 1);
      }
      if (spec instanceof PartialMapperPartitionSpec s) {
        int map = s.mapIndex();
        return new Blocks(map, map + 1, s.startReducerIndex(), s.endReducerIndex());
      }
      if (spec instanceof CoalescedMapperPartitionSpec s) {
        return new Blocks(s.startMapIndex(), s.endMapIndex(), 0, s.numReducers());
      }
      throw new IllegalArgumentException(
          "Unknown kind of shuffle partition " + spec.getClass().getName() + ": " + spec);
    }
  }
}
