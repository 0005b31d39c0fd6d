package io.weft.spark.feed;

import java.util.Iterator;
import org.apache.spark.TaskContext;

/** One epoch over a shard. For its task's thread. */
final class ShardBatches extends EpochSteps<ShardBatch> implements FeedBatches {
  private final FeedShard shard;
  private final int epoch;
  private final StepDump dump;
  private final Iterator<FeedShard.ShardChunk> chunks;

  ShardBatches(FeedShard shard, int epoch, TaskContext context, StepDump dump) {
    super(context);
    this.shard = shard;
    this.epoch = epoch;
    this.dump = dump;
    this.chunks = shard.epoch(epoch).iterator();
  }

  @Override
  boolean hasMore() {
    return chunks.hasNext();
  }

  @Override
  ShardBatch take(int step) {
    FeedShard.ShardChunk chunk = chunks.next();
    dump.step(epoch, step, chunk);
    return new ShardBatch(shard, chunk);
  }
}
