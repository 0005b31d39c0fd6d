package io.weft.spark.shuffle;

import io.weft.shuffle.ExecutorExchange;
import io.weft.shuffle.fetch.FetchListener;
import io.weft.shuffle.store.BlockKey;
import io.weft.spark.compat.RowChecksums;
import io.weft.spark.compat.RowSerializer;
import io.weft.spark.compat.SparkFeatures;
import io.weft.spark.config.Activation;
import io.weft.spark.config.AdoptionSettings;
import io.weft.spark.config.MemorySettings;
import io.weft.spark.config.SurviveSettings;
import io.weft.spark.config.WeftSettings;
import io.weft.spark.gpu.ExecutorGpu;
import io.weft.spark.runtime.LentFolders;
import io.weft.spark.runtime.WeftExecutor;
import io.weft.spark.shuffle.PartitionChunks.ChunkSizes;
import io.weft.spark.shuffle.RecordsReader.PackedRows;
import io.weft.spark.shuffle.ShuffleBlocks.FetchMetrics;
import io.weft.spark.shuffle.ShuffleBlocks.ReadRange;
import io.weft.spark.shuffle.ShuffleRoutes.RouteTaken;
import java.lang.ref.WeakReference;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.SparkConf;
import org.apache.spark.TaskContext;
import org.apache.spark.rdd.DeterministicLevel;
import org.apache.spark.serializer.Serializer;
import org.apache.spark.shuffle.BaseShuffleHandle;
import org.apache.spark.shuffle.IndexShuffleBlockResolver;
import org.apache.spark.shuffle.ShuffleHandle;
import org.apache.spark.shuffle.ShuffleReadMetricsReporter;
import org.apache.spark.shuffle.ShuffleReader;
import org.apache.spark.shuffle.ShuffleWriteMetricsReporter;
import org.apache.spark.shuffle.ShuffleWriter;
import org.apache.spark.shuffle.sort.SortShuffleManager;
import org.apache.spark.sql.internal.SQLConf;

/**
 * Chooses the route of each shuffle. A dependency with its own writer and reader uses those. Other
 * shuffles take the route of {@link RecordRoute}: packed SQL rows, Kryo records with tensors, or
 * streams of any serializer. Spark's sort shuffle carries what Weft refuses.
 *
 * <p>It extends Spark's manager for two reasons. Spark copies each record for other managers,
 * because it assumes that they keep records. And Spark casts the block resolver in several places.
 *
 * <p>Thread-safe: all tasks of a JVM share it.
 */
public final class WeftShuffleManager extends SortShuffleManager {
  private static final String HOST_LOCAL_KEY = "spark.shuffle.readHostLocalDisk";

  private final SparkConf conf;
  private final Eligibility eligibility;
  private final ChunkSizes sizes;
  private final BlockSizes blockSizes;
  private final WeftBlockResolver resolver;
  private final ShuffleFailures failures;

  /** Whether outputs of dead executors are adopted or read from copies. */
  private final boolean restores;

  /**
   * Shuffles that Weft carries, on the driver, if lost outputs may come back. They must not keep
   * Spark from forgetting them.
   */
  private final Map<Integer, WeakReference<ShuffleDependency<?, ?, ?>>> carried =
      new ConcurrentHashMap<>();

  private final ShuffleRoutes routes = new ShuffleRoutes();
  private final Fallbacks fallbacks =
      new Fallbacks("Spark's sort shuffle carries a shuffle instead of Weft");
  private final Fallbacks hostFeeds =
      new Fallbacks("The rows of a feed go from host to host instead of GPU to GPU");
  private final Fallbacks hostExchanges =
      new Fallbacks("Batches on GPUs are exchanged between hosts");

  /** The constructor Spark calls. */
  public WeftShuffleManager(SparkConf conf, boolean isDriver) {
    super(conf);
    this.conf = conf;
    this.restores = AdoptionSettings.ENABLED.get(conf) || SurviveSettings.isOn(conf);
    this.failures = new ShuffleFailures(WeftSettings.FALLBACK_FAILURES.get(conf));
    this.eligibility = new Eligibility(conf, failures);
    this.sizes = new ChunkSizes(MemorySettings.segmentBytes(conf));
    this.blockSizes = new BlockSizes(conf);
    this.resolver = new WeftBlockResolver(conf, super.shuffleBlockResolver());
  }

  /**
   * Prepares the driver's configuration for this manager. With Kryo records, programs that fetch
   * blocks by themselves must ask the executor that has them: only an executor with a task of the
   * shuffle knows the form of its records.
   *
   * @return what to log; empty if there is nothing to say
   */
  public static Optional<String> setUp(SparkConf conf) {
    conf.set(Activation.MANAGER_KEY, WeftShuffleManager.class.getName());
    if (!KryoRecords.areAskedFor(conf) || conf.contains(HOST_LOCAL_KEY)) {
      return Optional.empty();
    }
    conf.set(HOST_LOCAL_KEY, "false");
    return Optional.of(
        HOST_LOCAL_KEY
            + " is set to false, because WeftKryoRegistrator is set: an executor cannot read the"
            + " blocks of another one on its host without Weft's reader");
  }

  /** Reasons of shuffles left to Spark's sort shuffle; filled on the driver only. */
  public Fallbacks fallbacks() {
    return fallbacks;
  }

  /** Failures of Weft in this application; counted on the driver only. */
  public ShuffleFailures failures() {
    return failures;
  }

  /** Whether Weft would carry a shuffle of rows that the session of this thread begins now. */
  public boolean carriesRows() {
    return eligibility.carriesRows();
  }

  /** Routes of shuffles, for the UI; filled on the driver only. */
  public ShuffleRoutes routes() {
    return routes;
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
      routes.add(shuffleId, route(dependency, RouteTaken.SORT, refusal.get()));
      return super.registerShuffle(shuffleId, dependency);
    }
    // Push-based shuffle needs the data file of a sort shuffle.
    dependency.setShuffleMergeAllowed(false);
    if (restores) {
      carried.put(shuffleId, new WeakReference<>(dependency));
    }
    if (dependency instanceof ExchangeDependency exchanged) {
      routes.add(shuffleId, exchanged);
    } else {
      routes.add(shuffleId, route(dependency));
    }
    return new WeftShuffleHandle<>(shuffleId, dependency, InPlaceMetrics.ofRows(dependency));
  }

  /**
   * Whether Spark repeats map tasks of a shuffle one by one, and each makes the same rows again.
   * Then an output that Spark has removed can be used with all others. On the driver only.
   */
  public boolean isRestorable(int shuffleId) {
    WeakReference<ShuffleDependency<?, ?, ?>> known = carried.get(shuffleId);
    ShuffleDependency<?, ?, ?> dependency = known == null ? null : known.get();
    return dependency != null
        && !dependency.rdd().isBarrier()
        && !dependency.rdd().outputDeterministicLevel().equals(DeterministicLevel.INDETERMINATE());
  }

  private RouteTaken route(ShuffleDependency<?, ?, ?> dependency) {
    return switch (RecordRoute.of(dependency, conf)) {
      case ROWS -> route(dependency, "rows", "its records are packed SQL rows");
      case KRYO -> route(dependency, "Kryo records", "WeftKryoRegistrator is set");
      case STREAMS -> route(dependency, "streams", WeftSettings.RDD_STREAMS.key() + " is true");
    };
  }

  private static RouteTaken route(ShuffleDependency<?, ?, ?> dependency, String name, String why) {
    return new RouteTaken(name, why, dependency.partitioner().numPartitions());
  }

  @Override
  public <K, V> ShuffleWriter<K, V> getWriter(
      ShuffleHandle handle, long mapId, TaskContext context, ShuffleWriteMetricsReporter metrics) {
    if (!(handle instanceof WeftShuffleHandle<?, ?, ?> ours)) {
      requireOneLoader(handle);
      return super.getWriter(handle, mapId, context, metrics);
    }
    ShuffleDependency<?, ?, ?> dependency = ours.dependency();
    dependency.setShuffleMergeAllowed(false);
    resolver.learn(dependency);
    if (dependency instanceof ExchangeDependency exchanged) {
      return exchanged.newWriter(mapId, context, metrics, WeftExecutor.exchange(), blockSizes);
    }
    BlockKey key = new BlockKey(handle.shuffleId(), mapId);
    ExecutorExchange exchange = WeftExecutor.exchange();
    return switch (RecordRoute.of(dependency, conf)) {
      case ROWS -> new RowsWriter<>(dependency, key, context, metrics, exchange, sizes, blockSizes);
      case KRYO -> new KryoWriter<>(dependency, key, context, metrics, exchange, sizes);
      case STREAMS -> new StreamWriter<>(dependency, key, context, metrics, exchange, sizes);
    };
  }

  /** Spark's writers would keep the row objects that Weft's plans use again for the next row. */
  private static void requireOneLoader(ShuffleHandle handle) {
    Class<?> another = handle.getClass();
    if (another.getName().equals(WeftShuffleHandle.class.getName())) {
      throw new IllegalStateException(
          "Weft's classes are loaded twice in this executor, by %s and by %s. Unset"
                  .formatted(WeftShuffleHandle.class.getClassLoader(), another.getClassLoader())
              + " spark.executor.userClassPathFirst, or put Weft's jar into the jars folder of every"
              + " host instead of passing it with --jars (spark.jars).");
    }
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
    if (!(handle instanceof WeftShuffleHandle<?, ?, ?> ours)) {
      requireOneLoader(handle);
      return super.getReader(
          handle, startMapIndex, endMapIndex, startPartition, endPartition, context, metrics);
    }
    resolver.learn(ours.dependency());
    return reader(ours, range, context, metrics);
  }

  private <K, C> ShuffleReader<K, C> reader(
      WeftShuffleHandle<?, ?, ?> handle,
      ReadRange range,
      TaskContext context,
      ShuffleReadMetricsReporter metrics) {
    ShuffleBlocks blocks = ShuffleBlocks.of(range);
    ShuffleDependency<?, ?, ?> dependency = handle.dependency();
    if (dependency instanceof ExchangeDependency exchanged) {
      return exchanged.newReader(blocks, context, metrics, WeftExecutor.exchange());
    }
    ExecutorExchange exchange = WeftExecutor.exchange();
    Serializer serializer = dependency.serializer();
    boolean inBatches = canUseBatchFetch(range.startPartition(), range.endPartition(), context);
    FetchListener fetches = handle.listener(new FetchMetrics(metrics, inBatches));
    return switch (RecordRoute.of(dependency, conf)) {
      case ROWS -> {
        PackedRows<K, C> rows = new PackedRows<>(RowSerializer.of(serializer).fields());
        yield new RecordsReader<>(blocks, rows, context, metrics, exchange, fetches);
      }
      case KRYO -> {
        KryoRecords<K, C> records = new KryoRecords<>(serializer);
        yield new RecordsReader<>(blocks, records, context, metrics, exchange, fetches);
      }
      case STREAMS -> new StreamReader<>(dependency, blocks, context, metrics, exchange);
    };
  }

  /**
   * Returns the resolver of blocks of Spark's shuffle. It also migrates Weft's blocks of
   * decommissioned executors, and serves those that are fetched without Weft's reader.
   */
  @Override
  public IndexShuffleBlockResolver shuffleBlockResolver() {
    return resolver;
  }

  @Override
  public boolean unregisterShuffle(int shuffleId) {
    carried.remove(shuffleId);
    sizes.forget(shuffleId);
    blockSizes.forget(shuffleId);
    resolver.forget(shuffleId);
    WeftExecutor.current().ifPresent(exchange -> exchange.removeShuffle(shuffleId));
    LentFolders.release(shuffleId);
    ExecutorGpu.running().ifPresent(gpu -> gpu.removeShuffle(shuffleId));
    return super.unregisterShuffle(shuffleId);
  }

  /** Marks a shuffle that Weft carries. The driver decides this for all tasks. */
  static final class WeftShuffleHandle<K, V, C> extends BaseShuffleHandle<K, V, C> {
    private static final long serialVersionUID = 1L;

    /** Null if the shuffle has no exchange in Spark's SQL tab. */
    private final InPlaceMetrics metrics;

    WeftShuffleHandle(
        int shuffleId, ShuffleDependency<K, V, C> dependency, Optional<InPlaceMetrics> metrics) {
      super(shuffleId, dependency);
      this.metrics = metrics.orElse(null);
    }

    FetchListener listener(FetchListener next) {
      return metrics == null ? next : metrics.counting(next);
    }
  }

  /** Decides on the driver which shuffles Weft carries. */
  static final class Eligibility {
    private final SparkConf conf;
    private final ShuffleFailures failures;
    private final boolean started;

    /** Creates the rules for an application. */
    Eligibility(SparkConf conf, ShuffleFailures failures) {
      this.conf = conf;
      this.failures = failures;
      this.started = Activation.isActive(conf);
    }

    boolean carriesRows() {
      return started && settings().isEmpty();
    }

    /** Returns why Weft does not carry a shuffle; empty if it does. */
    Optional<String> refusal(ShuffleDependency<?, ?, ?> dependency) {
      if (!started) {
        return Optional.of("the plugin does not serve this application");
      }
      if (dependency instanceof ExchangeDependency) {
        return Optional.empty(); // Its planner has already read the settings.
      }
      return streams(dependency).or(this::settings);
    }

    private Optional<String> streams(ShuffleDependency<?, ?, ?> dependency) {
      if (RecordRoute.of(dependency, conf) != RecordRoute.STREAMS) {
        return Optional.empty();
      }
      if (!WeftSettings.RDD_STREAMS.get(conf)) {
        return Optional.of(WeftSettings.RDD_STREAMS.key() + " is false");
      }
      return RowChecksums.of(dependency) == null
          ? Optional.empty()
          : Optional.of("it has row checksums, but its records are not packed SQL rows");
    }

    private Optional<String> settings() {
      if (failures.refusal().isPresent()) {
        return failures.refusal();
      }
      if (!enabled()) {
        return Optional.of(WeftSettings.ENABLED.key() + " is false in its session");
      }
      return SparkFeatures.forcesPushBasedShuffle(conf)
          ? Optional.of(
              "push-based shuffle is on, and Spark before 4.2 cannot exclude a single"
                  + " shuffle from it")
          : Optional.empty();
    }

    /** Returns the session's setting, or the application's outside a session. */
    private boolean enabled() {
      String session = SQLConf.get().getConfString(WeftSettings.ENABLED.key(), null);
      return session == null ? WeftSettings.ENABLED.get(conf) : WeftSettings.ENABLED.parse(session);
    }
  }
}
