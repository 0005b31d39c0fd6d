package io.weft.spark.feed;

import io.weft.spark.columns.ColumnarSchema;
import io.weft.spark.config.Activation;
import io.weft.spark.shuffle.Unchecked;
import io.weft.spark.shuffle.WeftShuffleManager;
import io.weft.spark.sql.NarrowRDD;
import io.weft.spark.sql.ScalaInterop;
import java.io.Serializable;
import java.nio.ByteBuffer;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import org.apache.spark.BarrierTaskContext;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkEnv;
import org.apache.spark.SparkException;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.network.util.JavaUtils;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.util.CollectionAccumulator;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Function1;
import scala.collection.Iterator;
import scala.jdk.javaapi.CollectionConverters;
import scala.reflect.ClassTag;

/**
 * The exchanged rows of one feed, on the driver: they lie in the executors until it is closed. For
 * one thread.
 */
final class FeedExchange implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(FeedExchange.class);
  private static final String RANK_COLUMN = "weft.rank";

  private final SparkContext context;
  private final FeedDependency dependency;
  private final int[][] rows;

  /** A Scala function that travels. */
  private interface TaskFunction<A, B> extends Function1<A, B>, Serializable {}

  private record RankResult<T>(int rank, T result) implements Serializable {}

  private FeedExchange(SparkContext context, FeedDependency dependency, int[][] rows) {
    this.context = context;
    this.dependency = dependency;
    this.rows = rows;
  }

  /**
   * Runs the map side: deals the rows.
   *
   * @param keys columns whose values decide on the rank; none to deal evenly
   * @throws IllegalArgumentException if the data cannot be fed
   */
  static FeedExchange run(Dataset<Row> data, FeedSpec spec, List<String> keys) {
    check(spec);
    var withRanks =
        (org.apache.spark.sql.classic.Dataset<Row>)
            (spec.byKey() ? data.withColumn(RANK_COLUMN, rankOf(data, spec, keys)) : data);
    SparkContext context = withRanks.sparkSession().sparkContext();
    RDD<InternalRow> input = withRanks.queryExecution().toRdd();
    CollectionAccumulator<MapRows> written = new CollectionAccumulator<>();
    context.register(written);
    // Which batch a row is in depends on the rows before it.
    RDD<InternalRow> ordered =
        NarrowRDD.orderSensitive(input, InternalRow.class, elements -> elements);
    FeedDependency dependency = new FeedDependency(ordered, spec, written);
    int[][] rows = new int[input.getNumPartitions()][spec.ranks()];
    FeedExchange exchange = new FeedExchange(context, dependency, rows);
    boolean dealt = false;
    try {
      exchange.runMapStage();
      written.value().forEach(map -> rows[map.map()] = map.byPartition());
      exchange.report();
      dealt = true;
      return exchange;
    } catch (SparkException e) {
      throw Unchecked.<RuntimeException>raise(e); // As from any other action of Spark.
    } finally {
      if (!dealt) {
        exchange.close();
      }
    }
  }

  private static void check(FeedSpec spec) {
    SparkEnv env = SparkEnv.get();
    if (!(env.shuffleManager() instanceof WeftShuffleManager) || !Activation.isActive(env.conf())) {
      throw new IllegalStateException(
          "Feeds need Weft's plugin: is spark.plugins set to %s, and does the log say that Weft stays off?"
              .formatted(Activation.PLUGIN));
    }
    StructType schema = spec.schema();
    if (schema.isEmpty()) {
      throw new IllegalArgumentException("a feed needs at least one column");
    }
    if (spec.byKey() && List.of(schema.fieldNames()).contains(RANK_COLUMN)) {
      throw new IllegalArgumentException(
          "a column of a feed by key cannot be called " + RANK_COLUMN);
    }
    Set<String> names = new HashSet<>();
    for (String name : schema.fieldNames()) {
      if (!names.add(name)) {
        throw new IllegalArgumentException("two columns of a feed are called " + name);
      }
    }
    Optional<String> unsupported = ColumnarSchema.unsupportedReason(schema);
    if (unsupported.isPresent()) {
      throw new IllegalArgumentException("a feed cannot carry " + unsupported.get());
    }
    // Says what is wrong with a column's metadata before anything runs.
    List<TensorColumn> unused = TensorCheck.columns(schema);
  }

  /** Spark's own partition of a row by these keys. */
  private static Column rankOf(Dataset<Row> data, FeedSpec spec, List<String> keys) {
    Column[] columns = keys.stream().map(data::col).toArray(Column[]::new);
    return functions.pmod(functions.hash(columns), functions.lit(spec.ranks()));
  }

  private void runMapStage() throws SparkException {
    if (rows.length > 0) {
      context.submitMapStage(dependency).get();
    }
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

  /** Has every rank write a file of its batches. */
  FeedExport export() {
    int number = context.newShuffleId();
    FeedSpec spec = dependency.spec();
    try {
      List<FeedExport.Shard> shards =
          onRanks((shard, task) -> ShardExport.write(shard, number, task.taskAttemptId()));
      return new FeedExport(context, number, spec, shards);
    } catch (RuntimeException | Error e) {
      FeedExport.release(context, number);
      throw e;
    }
  }

  /** Runs a function over every rank's shard, all at the same time, in one barrier stage. */
  <T> List<T> onRanks(ShardFunction<T> function) {
    TaskFunction<Iterator<FeedShard>, Iterator<byte[]>> task =
        shards -> result(function, shards.next());
    ClassTag<byte[]> tag = ScalaInterop.erasedTag(byte[].class);
    RDD<byte[]> results = new FeedRDD(dependency, rows).barrier().mapPartitions(task, false, tag);
    // Spark repeats a barrier stage that feeds a shuffle, and gives up one that ends its job.
    List<byte[]> collected = new JavaRDD<>(results, tag).repartition(1).collect();
    return collected.stream()
        .map(FeedExchange::<T>decode)
        .sorted(Comparator.comparingInt(RankResult::rank))
        .map(RankResult::result)
        .toList();
  }

  /**
   * Java's serialisation, as for the function itself: {@code spark.serializer} may be Kryo, which
   * cannot fill records.
   */
  private static <T> byte[] encode(RankResult<T> result) {
    ClassTag<RankResult<T>> tag = ScalaInterop.erasedTag(RankResult.class);
    return JavaUtils.bufferToArray(
        SparkEnv.get().closureSerializer().newInstance().serialize(result, tag));
  }

  private static <T> RankResult<T> decode(byte[] bytes) {
    ClassTag<RankResult<T>> tag = ScalaInterop.erasedTag(RankResult.class);
    return SparkEnv.get()
        .closureSerializer()
        .newInstance()
        .deserialize(ByteBuffer.wrap(bytes), Thread.currentThread().getContextClassLoader(), tag);
  }

  private static <T> Iterator<byte[]> result(ShardFunction<T> function, FeedShard shard) {
    try {
      T result = function.run(shard, BarrierTaskContext.get());
      return CollectionConverters.asScala(
          List.of(encode(new RankResult<>(shard.rank(), result))).iterator());
    } catch (RuntimeException e) {
      throw e;
    } catch (Exception e) {
      throw new IllegalStateException("rank " + shard.rank() + " failed: " + e, e);
    }
  }

  /** What a rank's task does with its shard. */
  interface ShardFunction<T> extends Serializable {
    T run(FeedShard shard, BarrierTaskContext context) throws Exception;
  }

  @Override
  public void close() {
    if (context.cleaner().isDefined()) {
      context.cleaner().get().doCleanupShuffle(dependency.shuffleId(), false);
    }
  }
}
