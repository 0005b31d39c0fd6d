package io.weft.spark.shuffle;

import io.weft.catalog.BlockKey;
import io.weft.exchange.ExecutorExchange;
import io.weft.spark.compat.RowSerializer;
import io.weft.spark.config.WeftSettings;
import io.weft.spark.executor.LentFolders;
import io.weft.spark.executor.WeftExecutor;
import io.weft.spark.gpu.ExecutorGpu;
import java.util.Optional;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.SparkConf;
import org.apache.spark.TaskContext;
import org.apache.spark.serializer.Serializer;
import org.apache.spark.shuffle.IndexShuffleBlockResolver;
import org.apache.spark.shuffle.ShuffleHandle;
import org.apache.spark.shuffle.ShuffleReadMetricsReporter;
import org.apache.spark.shuffle.ShuffleReader;
import org.apache.spark.shuffle.ShuffleWriteMetricsReporter;
import org.apache.spark.shuffle.ShuffleWriter;
import org.apache.spark.shuffle.sort.SortShuffleManager;

/**
 * Chooses the route of each shuffle. A dependency with its own writer and reader uses those. Packed
 * SQL rows take the rows route, RDDs with Weft's Kryo registrator the Kryo route. Spark's sort
 * shuffle carries all other shuffles.
 *
 * <p>It extends Spark's manager for two reasons. Spark copies each record for other managers,
 * because it assumes that they keep records. And Spark casts the block resolver in several places.
 *
 * <p>Thread-safe: all tasks of a JVM share it.
 */
public final class WeftShuffleManager extends SortShuffleManager {
  private final Eligibility eligibility;
  private final ChunkSizes sizes;
  private final WeftBlockResolver resolver;
  private final Fallbacks fallbacks =
      new Fallbacks("Spark's sort shuffle carries a shuffle instead of Weft");
  private final Fallbacks hostFeeds =
      new Fallbacks("The rows of a feed go from host to host instead of GPU to GPU");
  private final Fallbacks hostExchanges =
      new Fallbacks("Batches on GPUs are exchanged between hosts");

  /** The constructor Spark calls. */
  public WeftShuffleManager(SparkConf conf, boolean isDriver) {
    super(conf);
    this.eligibility = new Eligibility(conf);
    this.sizes = new ChunkSizes(WeftSettings.segmentBytes(conf));
    this.resolver = new WeftBlockResolver(conf, super.shuffleBlockResolver());
  }

  /** Reasons of shuffles left to Spark's sort shuffle; filled on the driver only. */
  public Fallbacks fallbacks() {
    return fallbacks;
  }

  /** Reasons of feeds that go between hosts instead of GPUs; filled on the driver only. */
  public Fallbacks hostFeeds() {
    return hostFeeds;
  }

  /** Reasons of batches on GPUs that are exchanged between hosts; filled on the driver only. */
  public Fallbacks hostExchanges() {
    return hostExchanges;
  }

  @Override
  public <K, V, C> ShuffleHandle registerShuffle(
      int shuffleId, ShuffleDependency<K, V, C> dependency) {
    Optional<String> refusal = eligibility.refusal(dependency);
    if (refusal.isPresent()) {
      fallbacks.record(refusal.get());
      return super.registerShuffle(shuffleId, dependency);
    }
    // Push-based shuffle needs the data file of a sort shuffle.
    dependency.setShuffleMergeAllowed(false);
    return new WeftShuffleHandle<>(shuffleId, dependency);
  }

  @Override
  public <K, V> ShuffleWriter<K, V> getWriter(
      ShuffleHandle handle, long mapId, TaskContext context, ShuffleWriteMetricsReporter metrics) {
    if (!(handle instanceof WeftShuffleHandle<?, ?, ?> ours)) {
      return super.getWriter(handle, mapId, context, metrics);
    }
    ShuffleDependency<?, ?, ?> dependency = ours.dependency();
    dependency.setShuffleMergeAllowed(false);
    if (dependency instanceof ExchangeDependency exchanged) {
      return exchanged.newWriter(mapId, context, metrics, WeftExecutor.exchange());
    }
    BlockKey key = new BlockKey(handle.shuffleId(), mapId);
    ExecutorExchange exchange = WeftExecutor.exchange();
    return RowSerializer.packsRows(dependency.serializer())
        ? new RowsWriter<>(dependency, key, context, metrics, exchange, sizes)
        : new KryoWriter<>(dependency, key, context, metrics, exchange, sizes);
  }

  @Override
  public <K, C> ShuffleReader<K, C> getReader(
      ShuffleHandle handle,
      int startMapIndex,
      int endMapIndex,
      int startPartition,
      int endPartition,
      TaskContext context,
      ShuffleReadMetricsReporter metrics) {
    ReadRange range =
        new ReadRange(handle.shuffleId(), startMapIndex, endMapIndex, startPartition, endPartition);
    return handle instanceof WeftShuffleHandle<?, ?, ?> ours
        ? reader(ours.dependency(), range, context, metrics)
        : super.getReader(
            handle, startMapIndex, endMapIndex, startPartition, endPartition, context, metrics);
  }

  private static <K, C> ShuffleReader<K, C> reader(
      ShuffleDependency<?, ?, ?> dependency,
      ReadRange range,
      TaskContext context,
      ShuffleReadMetricsReporter metrics) {
    ShuffleBlocks blocks = ShuffleBlocks.of(range);
    if (dependency instanceof ExchangeDependency exchanged) {
      return exchanged.newReader(blocks, context, metrics, WeftExecutor.exchange());
    }
    return new RecordsReader<>(
        blocks, format(dependency.serializer()), context, metrics, WeftExecutor.exchange());
  }

  private static <K, C> RecordFormat<K, C> format(Serializer serializer) {
    return RowSerializer.packsRows(serializer)
        ? new PackedRows<>(RowSerializer.of(serializer).fields())
        : new KryoRecords<>(serializer);
  }

  /**
   * Returns the resolver of blocks of Spark's shuffle, which also migrates Weft's blocks of
   * decommissioned executors.
   */
  @Override
  public IndexShuffleBlockResolver shuffleBlockResolver() {
    return resolver;
  }

  @Override
  public boolean unregisterShuffle(int shuffleId) {
    sizes.forget(shuffleId);
    resolver.forget(shuffleId);
    WeftExecutor.current().ifPresent(exchange -> exchange.removeShuffle(shuffleId));
    LentFolders.release(shuffleId);
    ExecutorGpu.running().ifPresent(gpu -> gpu.removeShuffle(shuffleId));
    return super.unregisterShuffle(shuffleId);
  }
}
