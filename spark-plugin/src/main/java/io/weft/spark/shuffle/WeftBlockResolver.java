package io.weft.spark.shuffle;

import io.weft.shuffle.ExecutorExchange;
import io.weft.shuffle.fetch.BlockFetchException;
import io.weft.shuffle.fetch.BlockRequest;
import io.weft.shuffle.store.BlockKey;
import io.weft.shuffle.store.Checksum.ChecksumException;
import io.weft.spark.config.SurviveSettings;
import io.weft.spark.runtime.Messages.CopyNotRead;
import io.weft.spark.runtime.WeftExecutor;
import io.weft.spark.shuffle.ShuffleBlocks.ReadRange;
import io.weft.spark.shuffle.WeftBlockResolver.BlockLookups.Found;
import java.io.File;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Function;
import java.util.function.LongSupplier;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.SparkConf;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.network.client.StreamCallbackWithID;
import org.apache.spark.serializer.SerializerManager;
import org.apache.spark.shuffle.IndexShuffleBlockResolver;
import org.apache.spark.shuffle.ShuffleBlockInfo;
import org.apache.spark.storage.BlockId;
import org.apache.spark.storage.ShuffleBlockBatchId;
import org.apache.spark.storage.ShuffleBlockId;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Option;
import scala.Tuple2;
import scala.collection.immutable.List;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Resolves shuffle blocks of an executor for Spark. It delegates blocks of Spark's sort shuffle to
 * Spark's resolver. On a decommissioned executor it also offers Weft's map outputs for migration,
 * each as one block: see {@link MigratedBlocks}. Blocks of Weft that are fetched without Weft's
 * reader are rewritten: see {@link RewrittenBlocks}.
 *
 * <p>Thread-safe.
 */
final class WeftBlockResolver extends IndexShuffleBlockResolver {
  private static final Logger LOG = LoggerFactory.getLogger(WeftBlockResolver.class);

  private final IndexShuffleBlockResolver sorted;
  private final RewrittenBlocks rewritten;
  private final BlockLookups lookups = new BlockLookups(ShuffleBlocks::of, ShuffleBlocks::version);
  private final Set<Integer> skipped = ConcurrentHashMap.newKeySet();
  private final AtomicBoolean warned = new AtomicBoolean();

  /** Whether outputs of Weft are copied. */
  private final boolean copies;

  /** Wraps the resolver of Spark's shuffle manager. */
  WeftBlockResolver(SparkConf conf, IndexShuffleBlockResolver sorted) {
    super(conf);
    this.sorted = sorted;
    this.rewritten = new RewrittenBlocks(conf);
    this.copies = SurviveSettings.isOn(conf);
  }

  /**
   * Returns a block in the form of Spark's sort shuffle.
   *
   * @param folders of another executor on this host that has the block; none for own blocks
   */
  @Override
  public ManagedBuffer getBlockData(BlockId block, Option<String[]> folders) {
    Optional<ExecutorExchange> exchange = WeftExecutor.current();
    Optional<Found> found = exchange.flatMap(running -> request(running, block, folders));
    if (found.isEmpty()) {
      return sorted.getBlockData(block, folders);
    }
    try {
      return rewritten.rewrite(exchange.orElseThrow(), found.get().request(), block);
    } catch (IOException e) {
      if (found.get().copied() && isFetchFailure(e)) {
        reportUnread(found.get().request().key());
      }
      throw SneakyThrow.<RuntimeException>raise(e);
    }
  }

  private static boolean isFetchFailure(IOException e) {
    return e instanceof BlockFetchException || e.getCause() instanceof BlockFetchException;
  }

  /** Spark's iterator names this executor as the place of the block that failed, not the copy. */
  private static void reportUnread(BlockKey key) {
    try {
      WeftExecutor.send(new CopyNotRead(key.shuffleId()));
    } catch (IOException | RuntimeException e) {
      LOG.warn("The driver does not know that the copy of {} was not read", key, e);
    }
  }

  /** Returns the request for a block, if it is one of Weft. */
  private Optional<Found> request(
      ExecutorExchange exchange, BlockId block, Option<String[]> folders) {
    if (block instanceof ShuffleBlockId one) {
      int partition = one.reduceId();
      ReadRange range = allMaps(one.shuffleId(), partition, partition + 1);
      return request(exchange, one.mapId(), range, folders);
    }
    if (block instanceof ShuffleBlockBatchId batch) {
      ReadRange range = allMaps(batch.shuffleId(), batch.startReduceId(), batch.endReduceId());
      return request(exchange, batch.mapId(), range, folders);
    }
    return Optional.empty();
  }

  private static ReadRange allMaps(int shuffleId, int startPartition, int endPartition) {
    return new ReadRange(shuffleId, 0, Integer.MAX_VALUE, startPartition, endPartition);
  }

  private Optional<Found> request(
      ExecutorExchange exchange, long mapId, ReadRange range, Option<String[]> folders) {
    BlockKey key = new BlockKey(range.shuffleId(), mapId);
    if (MigratedBlocks.holds(exchange, key)) {
      String own = exchange.address().executorId();
      BlockRequest request =
          new BlockRequest(own, key, 0, range.startPartition(), range.endPartition(), 0);
      return Optional.of(new Found(request, false));
    }
    boolean isSorted = sorted.getIndexFile(range.shuffleId(), mapId, folders).exists();
    if (isSorted || (folders.isEmpty() && !copies)) {
      return Optional.empty();
    }
    // The folders do not name their executor, and without folders Spark resolves blocks in its
    // fallback storage. The driver knows who has the map output, or who has written its copy.
    return lookups.find(range, mapId);
  }

  /**
   * Copies an output of Weft of a decommissioned executor: Spark asks for the index of an output of
   * this executor only to copy its files to its fallback storage. There are no such files.
   */
  @Override
  public File getIndexFile(int shuffleId, long mapId, Option<String[]> folders) {
    BlockKey key = new BlockKey(shuffleId, mapId);
    Optional<ExecutorExchange> exchange = WeftExecutor.current();
    if (folders.isEmpty() && exchange.filter(running -> running.holds(key)).isPresent()) {
      try {
        if (!exchange.get().copyNow(key) && warned.compareAndSet(false, true)) {
          LOG.warn(
              "Map outputs of Weft are not copied to {}, because {} is not set",
              SurviveSettings.SPARKS_PATH,
              SurviveSettings.ENABLED);
        }
      } catch (IOException e) {
        throw SneakyThrow.<RuntimeException>raise(e);
      }
    }
    return super.getIndexFile(shuffleId, mapId, folders);
  }

  /** Remembers the form of a shuffle's records. */
  void learn(ShuffleDependency<?, ?, ?> dependency) {
    rewritten.learn(dependency);
  }

  @Override
  public Seq<ShuffleBlockInfo> getStoredShuffles() {
    var all = new ArrayList<>(CollectionConverters.asJava(sorted.getStoredShuffles()));
    WeftExecutor.current().map(MigratedBlocks::keys).stream()
        .flatMap(java.util.List::stream)
        .filter(key -> !skipped.contains(key.shuffleId()))
        .map(key -> new ShuffleBlockInfo(key.shuffleId(), key.mapId()))
        .forEach(all::add);
    return CollectionConverters.asScala(all).toSeq();
  }

  @Override
  public List<Tuple2<BlockId, ManagedBuffer>> getMigrationBlocks(ShuffleBlockInfo info) {
    Optional<ExecutorExchange> exchange = WeftExecutor.current();
    BlockKey key = new BlockKey(info.shuffleId(), info.mapId());
    if (exchange.isEmpty() || !MigratedBlocks.holds(exchange.get(), key)) {
      return sorted.getMigrationBlocks(info);
    }
    try {
      Tuple2<BlockId, ManagedBuffer> block = MigratedBlocks.outgoing(exchange.get(), key);
      return CollectionConverters.asScala(java.util.List.of(block)).toList();
    } catch (ChecksumException e) {
      LOG.warn(
          "{} cannot move to another executor and will be computed again: {}", key, e.getMessage());
      return none();
    } catch (IOException e) {
      LOG.info("{} was removed before it could move to another executor: {}", key, e.toString());
      return none();
    }
  }

  private static List<Tuple2<BlockId, ManagedBuffer>> none() {
    return CollectionConverters.asScala(java.util.List.<Tuple2<BlockId, ManagedBuffer>>of())
        .toList();
  }

  @Override
  public StreamCallbackWithID putShuffleBlockAsStream(
      BlockId block, SerializerManager serializers) {
    return block instanceof ShuffleBlockBatchId ours
        ? new MigrationStream(WeftExecutor.exchange(), ours)
        : sorted.putShuffleBlockAsStream(block, serializers);
  }

  /** Excludes a shuffle from migration, because Spark will remove it soon. */
  @Override
  public void addShuffleToSkip(int shuffleId) {
    skipped.add(shuffleId);
    sorted.addShuffleToSkip(shuffleId);
  }

  /** Forgets a removed shuffle. */
  void forget(int shuffleId) {
    skipped.remove(shuffleId);
    rewritten.forget(shuffleId);
    lookups.forget(shuffleId);
  }

  /**
   * Where the blocks are that Spark names by their ids alone. A reader asks for one block after the
   * other, but each look-up in Spark's tracker lists all map outputs. So the last ones are kept, as
   * long as the tracker's version stays the same.
   *
   * <p>Thread-safe. Not locked while Spark looks up.
   */
  static final class BlockLookups {
    /** About as many as tasks of an executor that read at the same time. */
    private static final int MAX_RANGES = 16;

    private final Function<ReadRange, ShuffleBlocks> tracker;
    private final LongSupplier version;

    /** By use, the latest last. Guarded by itself. */
    private final Map<ReadRange, Answer> answers = new LinkedHashMap<>(MAX_RANGES, 0.75f, true);

    private record Answer(long version, Map<Long, BlockRequest> byMap, ShuffleBlocks blocks) {}

    /**
     * A block and what it is read from.
     *
     * @param copied whether only a copy of it is left
     */
    record Found(BlockRequest request, boolean copied) {}

    /**
     * Starts empty.
     *
     * @param version changes when the answers of the tracker may have changed
     */
    BlockLookups(Function<ReadRange, ShuffleBlocks> tracker, LongSupplier version) {
      this.tracker = tracker;
      this.version = version;
    }

    /**
     * Looks up the block of a map output. May wait for the driver.
     *
     * @return empty if the map output has no data in the range, or is unknown
     */
    Optional<Found> find(ReadRange range, long mapId) {
      long now = version.getAsLong();
      Answer answer;
      synchronized (answers) {
        answer = answers.get(range);
      }
      if (answer == null || answer.version != now) {
        answer = lookUp(range, now);
      }
      BlockRequest request = answer.byMap.get(mapId);
      return request == null
          ? Optional.empty()
          : Optional.of(new Found(request, answer.blocks.isCopied(request)));
    }

    private Answer lookUp(ReadRange range, long now) {
      ShuffleBlocks blocks = tracker.apply(range);
      Map<Long, BlockRequest> byMap = new HashMap<>();
      blocks.requests().forEach(request -> byMap.put(request.key().mapId(), request));
      Answer answer = new Answer(now, byMap, blocks);
      synchronized (answers) {
        answers.put(range, answer);
        if (answers.size() > MAX_RANGES) {
          answers.remove(answers.keySet().iterator().next());
        }
      }
      return answer;
    }

    /** Forgets a removed shuffle. */
    void forget(int shuffle) {
      synchronized (answers) {
        answers.keySet().removeIf(range -> range.shuffleId() == shuffle);
      }
    }
  }
}
