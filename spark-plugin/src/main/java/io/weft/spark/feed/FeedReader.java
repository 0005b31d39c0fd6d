package io.weft.spark.feed;

import io.weft.exchange.ExecutorExchange;
import io.weft.spark.shuffle.ReadRange;
import io.weft.spark.shuffle.ShuffleBlocks;
import io.weft.transfer.BlockRequest;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.spark.TaskContext;
import org.apache.spark.shuffle.ShuffleReadMetricsReporter;
import org.apache.spark.shuffle.ShuffleReader;
import scala.Product2;
import scala.collection.Iterator;

/**
 * Gives a rank its shard of the exchanged rows. For one task thread.
 *
 * @param <K> unused
 * @param <C> unused: a shard is no iterator of records
 */
final class FeedReader<K, C> implements ShuffleReader<K, C> {
  private final int shuffleId;
  private final FeedSpec spec;
  private final ShuffleBlocks blocks;
  private final TaskContext context;
  private final ShuffleReadMetricsReporter metrics;
  private final ExecutorExchange exchange;

  FeedReader(
      int shuffleId,
      FeedSpec spec,
      ShuffleBlocks blocks,
      TaskContext context,
      ShuffleReadMetricsReporter metrics,
      ExecutorExchange exchange) {
    this.shuffleId = shuffleId;
    this.spec = spec;
    this.blocks = blocks;
    this.context = context;
    this.metrics = metrics;
    this.exchange = exchange;
  }

  /**
   * Reads a rank's chunks and waits for those that come over the network.
   *
   * @param rows by map task and partition, as written
   */
  FeedShard shard(int[][] rows, int rank) {
    FeedPlan plan = FeedPlan.of(spec, rows);
    if (spec.onGpus() != null) {
      return new DeviceShardLoader(shuffleId, spec, plan, rank, context, metrics)
          .load(blocks, writersTo(rank));
    }
    return new ShardLoader(shuffleId, spec, plan, rank, exchange, context, metrics)
        .load(blocks, writersTo(rank));
  }

  /** Map tasks whose output has data in a partition. */
  private Set<Integer> writersTo(int partition) {
    ReadRange range = new ReadRange(shuffleId, 0, Integer.MAX_VALUE, partition, partition + 1);
    return ShuffleBlocks.of(range).requests().stream()
        .map(BlockRequest::mapIndex)
        .collect(Collectors.toSet());
  }

  @Override
  public Iterator<Product2<K, C>> read() {
    throw new UnsupportedOperationException("a feed is read by batches, not by records");
  }
}
