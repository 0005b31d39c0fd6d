package io.weft.spark.feed;

import io.weft.spark.config.WeftSettings;
import io.weft.spark.shuffle.Unchecked;
import io.weft.spark.sql.NarrowRDD;
import io.weft.spark.sql.ScalaInterop;
import java.io.Serializable;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import org.apache.spark.BarrierTaskContext;
import org.apache.spark.MapOutputTrackerMaster;
import org.apache.spark.ShuffleStatus;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkEnv;
import org.apache.spark.SparkException;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.functions;
import org.apache.spark.util.CollectionAccumulator;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Function1;
import scala.collection.Iterator;
import scala.jdk.javaapi.CollectionConverters;
import scala.reflect.ClassTag;

/**
 * The exchanged rows of one feed, on the driver. The rows stay in the executors until it is closed.
 * For one thread.
 */
final class FeedExchange implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(FeedExchange.class);

  private final SparkContext context;
  private final FeedDependency dependency;
  private final CollectionAccumulator<MapRows> reports;

  /** Rows by map task and partition; set when the map side has run. */
  private int[][] rows = {};

  /** A serializable Scala function. */
  private interface TaskFunction<A, B> extends Function1<A, B>, Serializable {}

  private FeedExchange(
      SparkContext context, FeedDependency dependency, CollectionAccumulator<MapRows> reports) {
    this.context = context;
    this.dependency = dependency;
    this.reports = reports;
  }

  /**
   * Runs the map side, which deals the rows.
   *
   * @param keys columns whose values determine the rank; none to deal evenly
   * @throws IllegalStateException if the application cannot run feeds
   * @throws IllegalArgumentException if the data cannot be fed
   */
  static FeedExchange run(Dataset<Row> data, FeedSpec spec, List<String> keys) {
    FeedRequirements.check(spec);
    if (spec.onGpus() == null) {
      return runThere(data, spec, keys);
    }
    Optional<String> obstacle = GpuRoute.obstacle(spec, SparkEnv.get().conf());
    if (obstacle.isEmpty()) {
      FeedExchange exchange = runThere(data, spec, keys);
      obstacle = GpuRoute.obstacle(exchange.reports.value(), exchange.registered());
      if (obstacle.isEmpty()) {
        return exchange;
      }
      exchange.close();
    }
    GpuRoute.say(obstacle.get());
    return runThere(data, spec.onHosts(), keys);
  }

  private static FeedExchange runThere(Dataset<Row> data, FeedSpec spec, List<String> keys) {
    var withRanks = (org.apache.spark.sql.classic.Dataset<Row>) withRanks(data, spec, keys);
    SparkContext context = withRanks.sparkSession().sparkContext();
    RDD<InternalRow> input = withRanks.queryExecution().toRdd();
    CollectionAccumulator<MapRows> reports = new CollectionAccumulator<>();
    context.register(reports);
    // The batch of a row depends on the rows before it.
    RDD<InternalRow> ordered =
        NarrowRDD.orderSensitive(input, InternalRow.class, elements -> elements);
    FeedDependency dependency = new FeedDependency(ordered, spec, reports);
    FeedExchange exchange = new FeedExchange(context, dependency, reports);
    boolean dealt = false;
    try {
      exchange.deal(input.getNumPartitions());
      exchange.report();
      dealt = true;
      return exchange;
    } catch (SparkException e) {
      throw Unchecked.<RuntimeException>raise(e); // Checked as in any other action of Spark.
    } finally {
      if (!dealt) {
        exchange.close();
      }
    }
  }

  /** Waits for cores. Late executors have registered by the time the map tasks have run. */
  private void awaitCores() {
    FeedCores.await(context, dependency.spec().ranks(), FeedCores.REGISTRATION_TIMEOUT)
        .ifPresent(LOG::warn);
  }

  /** With keys, appends the partition that Spark computes from them as a column. */
  private static Dataset<Row> withRanks(Dataset<Row> data, FeedSpec spec, List<String> keys) {
    if (!spec.byKey()) {
      return data;
    }
    Column[] columns = keys.stream().map(data::col).toArray(Column[]::new);
    return data.withColumn(
        FeedRequirements.RANK_COLUMN,
        functions.pmod(functions.hash(columns), functions.lit(spec.ranks())));
  }

  private void deal(int maps) throws SparkException {
    if (maps > 0) {
      context.submitMapStage(dependency).get();
      rows = MapRows.written(reports.value(), registered());
    }
  }

  /** Returns the id of the registered output of each map task. */
  private long[] registered() {
    ShuffleStatus status = tracker().shuffleStatuses().apply(dependency.shuffleId());
    return status.withMapStatuses(
        outputs ->
            Arrays.stream(outputs)
                .mapToLong(output -> output == null ? MapRows.UNREGISTERED : output.mapId())
                .toArray());
  }

  private static MapOutputTrackerMaster tracker() {
    return (MapOutputTrackerMaster) SparkEnv.get().mapOutputTracker();
  }

  private void report() {
    FeedPlan plan = FeedPlan.of(dependency.spec(), rows);
    LOG.info(
        "A feed of {} rows: {} ranks take {} steps of {} rows in every epoch",
        plan.writtenRows(),
        dependency.spec().ranks(),
        plan.steps(),
        dependency.spec().batchRows());
    if (plan.droppedRows() > 0) {
      LOG.warn(
          "{} of the feed's {} rows fill no step of all ranks and are not fed; lastBatch(KEEP)"
              + " would feed them in batches that are not full",
          plan.droppedRows(),
          plan.writtenRows());
    }
  }

  /** Makes every rank write a file of its batches. */
  FeedExport export() {
    warnOfDump();
    int number = context.newShuffleId();
    List<FeedExport.Shard> shards = null;
    try {
      shards = onRanks((shard, task) -> ShardExport.write(shard, number, task));
      return new FeedExport(context, number, dependency.spec(), shards);
    } finally {
      // A catch does not work here: Spark throws checked exceptions that no method declares.
      if (shards == null) {
        ShardedExport.release(context, number);
      }
    }
  }

  private void warnOfDump() {
    if (dependency.spec().dumpAt().step() >= 0) {
      LOG.warn(
          "{} applies to feeds that train: this one is exported and dumps no step",
          WeftSettings.DEBUG_DUMP_STEP);
    }
  }

  /** Makes every rank upload its batches to its GPU, for other processes. */
  GpuFeedExport exportToGpus() {
    warnOfDump();
    int number = context.newShuffleId();
    List<GpuFeedExport.Shard> shards = null;
    try {
      shards = onRanks((shard, task) -> GpuShardExport.write(shard, number, task));
      return new GpuFeedExport(context, number, dependency.spec(), shards);
    } finally {
      if (shards == null) {
        ShardedExport.release(context, number);
      }
    }
  }

  /**
   * Runs a function over every rank's shard, all at the same time, in one barrier stage.
   *
   * @throws RankFailedException if a rank's function caused the failure of the last attempt
   */
  <T> List<T> onRanks(ShardFunction<T> function) {
    awaitCores();
    try (FeedNews news = FeedNews.open(dependency.shuffleId())) {
      try {
        return results(function);
      } catch (Exception e) {
        Optional<RankFailure> own = news.decisive();
        if (own.isPresent()) {
          throw own.get().exception(e);
        }
        throw Unchecked.<RuntimeException>raise(e); // Checked as in any other action of Spark.
      }
    }
  }

  private <T> List<T> results(ShardFunction<T> function) {
    TaskFunction<Iterator<FeedShard>, Iterator<byte[]>> task =
        shards -> result(function, shards.next());
    ClassTag<byte[]> tag = ScalaInterop.erasedTag(byte[].class);
    RDD<byte[]> results = new FeedRDD(dependency, rows).barrier().mapPartitions(task, false, tag);
    // Spark repeats a barrier stage whose shuffle is read, and gives up a stage that ends its job.
    List<byte[]> collected = new JavaRDD<>(results, tag).repartition(1).collect();
    return collected.stream()
        .map(RankResult::<T>decode)
        .sorted(Comparator.comparingInt(RankResult::rank))
        .map(RankResult::result)
        .toList();
  }

  private static <T> Iterator<byte[]> result(ShardFunction<T> function, FeedShard shard) {
    BarrierTaskContext context = BarrierTaskContext.get();
    try {
      if (shard.onDevice() != null) {
        // Ranks start their own GPU transfers only after their rows have arrived.
        context.barrier();
      }
      T result = function.run(shard, context);
      return CollectionConverters.asScala(
          List.of(new RankResult<>(shard.rank(), result).encode()).iterator());
    } catch (RuntimeException | Error e) {
      RankFailure.tell(shard.feed(), shard.rank(), context, e);
      throw e;
    } catch (Exception e) {
      RankFailure.tell(shard.feed(), shard.rank(), context, e);
      throw new IllegalStateException("rank " + shard.rank() + " failed: " + e, e);
    }
  }

  /** The work of a rank's task on its shard. */
  interface ShardFunction<T> extends Serializable {
    T run(FeedShard shard, BarrierTaskContext context) throws Exception;
  }

  /** Frees the rows in all executors, in the background. */
  @Override
  public void close() {
    int shuffle = dependency.shuffleId();
    if (context.isStopped()) {
      LOG.debug("the rows of feed {} ended with its application", shuffle);
    } else if (context.cleaner().isDefined()) {
      context.cleaner().get().doCleanupShuffle(shuffle, false);
    } else if (tracker().containsShuffle(shuffle)) {
      // Does the work of Spark's cleaner, which spark.cleaner.referenceTracking has turned off.
      context.shuffleDriverComponents().removeShuffle(shuffle, false);
      tracker().unregisterShuffle(shuffle);
    }
  }
}
