package io.weft.spark.feed;

import io.weft.spark.compat.NarrowRDD;
import io.weft.spark.compat.ScalaInterop;
import io.weft.spark.config.WeftSettings;
import io.weft.spark.feed.FeedReports.RankFailure;
import io.weft.spark.shuffle.SneakyThrow;
import java.io.Serializable;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.IntSupplier;
import java.util.stream.IntStream;
import org.apache.spark.BarrierTaskContext;
import org.apache.spark.Dependency;
import org.apache.spark.MapOutputTrackerMaster;
import org.apache.spark.Partition;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.ShuffleStatus;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkEnv;
import org.apache.spark.SparkException;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.executor.TempShuffleReadMetrics;
import org.apache.spark.network.util.JavaUtils;
import org.apache.spark.rdd.RDD;
import org.apache.spark.resource.ResourceProfile;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.util.CollectionAccumulator;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Function1;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;
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

  /** Whether the caller was interrupted, so that tasks may still write or read the rows. */
  private boolean abandoned;

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
    FeedInput input = FeedInput.of(data, spec, keys);
    if (!spec.onGpus()) {
      return runMapSide(input, spec);
    }
    Optional<String> obstacle = GpuRoute.obstacle(spec, SparkEnv.get().conf());
    if (obstacle.isEmpty()) {
      GpuRoute.logCopies(input, spec);
      FeedExchange exchange = runMapSide(input, spec);
      obstacle = GpuRoute.obstacle(exchange.reports.value(), exchange.registered());
      if (obstacle.isEmpty()) {
        return exchange;
      }
      exchange.close();
    }
    GpuRoute.log(obstacle.get());
    return runMapSide(input, spec.onHosts());
  }

  private static FeedExchange runMapSide(FeedInput input, FeedSpec spec) {
    SparkContext context = input.elements().sparkContext();
    CollectionAccumulator<MapRows> reports = new CollectionAccumulator<>();
    context.register(reports);
    // The batch of a row depends on the rows before it.
    RDD<InternalRow> ordered =
        NarrowRDD.orderSensitive(input.elements(), InternalRow.class, elements -> elements);
    FeedDependency dependency = new FeedDependency(ordered, input, spec, reports);
    FeedExchange exchange = new FeedExchange(context, dependency, reports);
    boolean dealt = false;
    try {
      exchange.deal(ordered.getNumPartitions());
      exchange.report();
      dealt = true;
      return exchange;
    } catch (Exception e) {
      // Checked as in any other action of Spark. Clients of Spark Connect see only its message, so
      // this is the failure of the stage, not that of waiting for it.
      boolean ofStage = e instanceof SparkException && e.getCause() != null;
      throw SneakyThrow.<RuntimeException>raise(ofStage ? e.getCause() : e);
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

  private void deal(int maps) throws Exception {
    if (maps > 0) {
      job(() -> context.submitMapStage(dependency).get());
      rows = MapRows.written(reports.value(), registered());
    }
  }

  /** Runs a job, and cancels it if this thread is interrupted, which Spark does not. */
  private <T> T job(Callable<T> job) throws Exception {
    if (Thread.interrupted()) {
      throw new InterruptedException("interrupted before a job of a feed");
    }
    String tag = "weft-feed-" + dependency.shuffleId();
    context.addJobTag(tag);
    try {
      return job.call();
    } catch (InterruptedException e) {
      abandoned = true;
      if (!context.isStopped()) {
        context.cancelJobsWithTag(tag);
      }
      throw e;
    } finally {
      context.removeJobTag(tag);
    }
  }

  /** Returns the id of the registered output of each map task; none if there are no map tasks. */
  private long[] registered() {
    if (!tracker().containsShuffle(dependency.shuffleId())) {
      return new long[0];
    }
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
    try (FeedReports ranks = FeedReports.open(dependency.shuffleId(), context::cancelStage)) {
      try {
        return results(function);
      } catch (Exception e) {
        Optional<RankFailure> own = ranks.decisive();
        if (own.isPresent()) {
          throw own.get().exception(e);
        }
        throw SneakyThrow.<RuntimeException>raise(e); // Checked as in any other action of Spark.
      }
    }
  }

  private <T> List<T> results(ShardFunction<T> function) throws Exception {
    TaskFunction<Iterator<FeedShard>, Iterator<byte[]>> task =
        shards -> result(function, shards.next());
    ClassTag<byte[]> tag = ScalaInterop.erasedTag(byte[].class);
    RDD<byte[]> results = new FeedRDD(dependency, rows).barrier().mapPartitions(task, false, tag);
    // Spark repeats a barrier stage whose shuffle is read, and gives up a stage that ends its job.
    JavaRDD<byte[]> shuffled = new JavaRDD<>(results, tag).repartition(1);
    List<byte[]> encoded = job(shuffled::collect);
    // After a failure or an interrupt the stages may still run, so Spark's cleaner frees it.
    free(nearestShuffle(shuffled.rdd()));
    return encoded.stream()
        .map(RankResult::<T>decode)
        .sorted(Comparator.comparingInt(RankResult::rank))
        .map(RankResult::result)
        .toList();
  }

  private static int nearestShuffle(RDD<?> rdd) {
    Dependency<?> dependency = rdd.dependencies().head();
    return dependency instanceof ShuffleDependency<?, ?, ?> shuffle
        ? shuffle.shuffleId()
        : nearestShuffle(dependency.rdd());
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
      RankFailure.report(shard.feed(), shard.rank(), context, e);
      throw e;
    } catch (Exception e) {
      RankFailure.report(shard.feed(), shard.rank(), context, e);
      throw new IllegalStateException("rank " + shard.rank() + " failed: " + e, e);
    }
  }

  /** The work of a rank's task on its shard. */
  interface ShardFunction<T> extends Serializable {
    T run(FeedShard shard, BarrierTaskContext context) throws Exception;
  }

  /**
   * Frees the rows in all executors, in the background. After an interrupt, Spark's cleaner frees
   * them later, or the end of the application if the cleaner is off: Spark 4.0 ends the application
   * if a task writes to a shuffle that is gone.
   */
  @Override
  public void close() {
    if (!abandoned) {
      free(dependency.shuffleId());
    }
  }

  private void free(int shuffle) {
    if (context.isStopped()) {
      LOG.debug("shuffle {} of a feed ended with its application", shuffle);
    } else if (context.cleaner().isDefined()) {
      context.cleaner().get().doCleanupShuffle(shuffle, false);
    } else if (tracker().containsShuffle(shuffle)) {
      // Does the work of Spark's cleaner, which spark.cleaner.referenceTracking has turned off.
      context.shuffleDriverComponents().removeShuffle(shuffle, false);
      tracker().unregisterShuffle(shuffle);
    }
  }

  /**
   * Waits until all ranks of a feed can run at the same time. Executors may still be starting when
   * a feed begins, and Spark checks for free cores only every 15 s. Stateless.
   */
  static final class FeedCores {
    /** Time for starting executors to register. */
    static final Duration REGISTRATION_TIMEOUT = Duration.ofSeconds(10);

    private static final long PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(50);

    private FeedCores() {}

    /** Waits until the executors of an application can run that many tasks at the same time. */
    static Optional<String> await(SparkContext context, int ranks, Duration timeout) {
      ResourceProfile profile = context.resourceProfileManager().defaultResourceProfile();
      return await(() -> context.maxNumConcurrentTasks(profile), ranks, timeout, context.conf());
    }

    /**
     * Waits for cores until a timeout or an interrupt; it leaves the interrupt flag set.
     *
     * @param cores how many tasks the present executors can run at a time
     * @return a warning if there are too few cores
     */
    static Optional<String> await(IntSupplier cores, int ranks, Duration timeout, SparkConf conf) {
      long start = System.nanoTime();
      int now = cores.getAsInt();
      while (now < ranks
          && System.nanoTime() - start < timeout.toNanos()
          && !Thread.currentThread().isInterrupted()) {
        LockSupport.parkNanos(PAUSE_NANOS);
        now = cores.getAsInt();
      }
      return now < ranks ? Optional.of(warning(now, ranks, conf)) : Optional.empty();
    }

    private static String warning(int cores, int ranks, SparkConf conf) {
      String settings = "spark.scheduler.barrier.maxConcurrentTasksCheck.";
      return ("A feed's %d ranks run at the same time, and the present executors can run %d tasks:"
              + " Spark waits for more, %s times for %s, and then fails the job")
          .formatted(
              ranks,
              cores,
              conf.get(settings + "maxFailures", "40"),
              conf.get(settings + "interval", "15s"));
    }
  }

  /**
   * The reduce side of a feed's shuffle: one partition per rank, with its shard as the only
   * element.
   */
  static final class FeedRDD extends RDD<FeedShard> {
    private FeedDependency dependency;
    private final int ranks;
    private final int[][] rows;

    /** A rank, as a partition. */
    private record Rank(int index) implements Partition {
      // Named as the accessor of Spark's Partition.
    }

    /**
     * @param rows by map task and partition, as written
     */
    FeedRDD(FeedDependency dependency, int[][] rows) {
      super(dependency.rdd().context(), ScalaInterop.seq(), ScalaInterop.tag(FeedShard.class));
      this.dependency = dependency;
      this.ranks = dependency.spec().ranks();
      this.rows = rows;
    }

    @Override
    public Seq<Dependency<?>> getDependencies() {
      return ScalaInterop.seq((Dependency<?>) dependency);
    }

    @Override
    public Partition[] getPartitions() {
      return IntStream.range(0, ranks).mapToObj(Rank::new).toArray(Partition[]::new);
    }

    @Override
    public Iterator<FeedShard> compute(Partition split, TaskContext context) {
      RankFailure.reportBegin(dependency.shuffleId(), split.index(), context);
      TempShuffleReadMetrics metrics = context.taskMetrics().createTempShuffleReadMetrics();
      FeedReader<?, ?> reader =
          (FeedReader<?, ?>)
              SparkEnv.get()
                  .shuffleManager()
                  .getReader(
                      dependency.shuffleHandle(), 0, Integer.MAX_VALUE, 0, ranks, context, metrics);
      return CollectionConverters.asScala(List.of(reader.shard(rows, split.index())).iterator());
    }

    @Override
    public void clearDependencies() {
      super.clearDependencies();
      dependency = null;
    }
  }

  /**
   * The result of a rank's function, as it is sent to the driver. Like the function, it uses Java
   * serialization: {@code spark.serializer} may be Kryo, which cannot read records.
   */
  record RankResult<T>(int rank, T result) implements Serializable {
    byte[] encode() {
      return JavaUtils.bufferToArray(
          SparkEnv.get().closureSerializer().newInstance().serialize(this, tag()));
    }

    static <T> RankResult<T> decode(byte[] bytes) {
      ClassTag<RankResult<T>> tag = tag();
      return SparkEnv.get()
          .closureSerializer()
          .newInstance()
          .deserialize(ByteBuffer.wrap(bytes), Thread.currentThread().getContextClassLoader(), tag);
    }

    private static <T> ClassTag<RankResult<T>> tag() {
      return ScalaInterop.erasedTag(RankResult.class);
    }
  }
}
