package io.weft.spark.shuffle;

import io.weft.catalog.BlockKey;
import io.weft.exchange.ExecutorExchange;
import io.weft.integrity.ChecksumException;
import io.weft.spark.executor.WeftExecutor;
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
 * What Spark asks about blocks that lie on an executor. For those of its own shuffle Spark's
 * resolver answers. An executor that is decommissioned also offers what Weft holds: each map output
 * as one block, see {@link MovedBlocks}.
 *
 * <p>Thread-safe.
 */
final class WeftBlockResolver extends IndexShuffleBlockResolver {
  private static final Logger LOG = LoggerFactory.getLogger(WeftBlockResolver.class);

  private final IndexShuffleBlockResolver sorted;
  private final Set<Integer> skipped = ConcurrentHashMap.newKeySet();

  /** Answers beside the resolver that Spark's manager has made for itself. */
  WeftBlockResolver(SparkConf conf, IndexShuffleBlockResolver sorted) {
    super(conf);
    this.sorted = sorted;
  }

  @Override
  public Seq<ShuffleBlockInfo> getStoredShuffles() {
    var all = new ArrayList<>(CollectionConverters.asJava(sorted.getStoredShuffles()));
    WeftExecutor.current().map(MovedBlocks::keys).stream()
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
    if (exchange.isEmpty() || !MovedBlocks.holds(exchange.get(), key)) {
      return sorted.getMigrationBlocks(info);
    }
    try {
      Tuple2<BlockId, ManagedBuffer> block = MovedBlocks.outgoing(exchange.get(), key);
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
        ? new AdoptedStream(WeftExecutor.exchange(), ours)
        : sorted.putShuffleBlockAsStream(block, serializers);
  }

  /** Spark will remove the shuffle soon, and has its blocks left where they are. */
  @Override
  public void addShuffleToSkip(int shuffleId) {
    skipped.add(shuffleId);
    sorted.addShuffleToSkip(shuffleId);
  }

  /** The shuffle is removed. */
  void forget(int shuffleId) {
    skipped.remove(shuffleId);
  }
}
