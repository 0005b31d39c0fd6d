package io.weft.spark.shuffle;

import io.weft.shuffle.ExecutorExchange;
import io.weft.shuffle.store.BlockKey;
import io.weft.shuffle.store.Checksum.ChecksumException;
import io.weft.spark.runtime.WeftExecutor;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.SparkConf;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.network.client.StreamCallbackWithID;
import org.apache.spark.serializer.SerializerManager;
import org.apache.spark.shuffle.IndexShuffleBlockResolver;
import org.apache.spark.shuffle.ShuffleBlockInfo;
import org.apache.spark.storage.BlockId;
import org.apache.spark.storage.ShuffleBlockBatchId;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Tuple2;
import scala.collection.immutable.List;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Resolves shuffle blocks of an executor for Spark. It delegates blocks of Spark's sort shuffle to
 * Spark's resolver. On a decommissioned executor it also offers Weft's map outputs for migration,
 * each as one block: see {@link MigratedBlocks}.
 *
 * <p>Thread-safe.
 */
final class WeftBlockResolver extends IndexShuffleBlockResolver {
  private static final Logger LOG = LoggerFactory.getLogger(WeftBlockResolver.class);

  private final IndexShuffleBlockResolver sorted;
  private final Set<Integer> skipped = ConcurrentHashMap.newKeySet();

  /** Wraps the resolver of Spark's shuffle manager. */
  WeftBlockResolver(SparkConf conf, IndexShuffleBlockResolver sorted) {
    super(conf);
    this.sorted = sorted;
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
  }
}
