package io.weft.spark.feed;

import java.util.Iterator;
import java.util.NoSuchElementException;
import org.apache.spark.TaskContext;

/** One epoch over a shard. For its task's thread. */
final class ShardBatches implements FeedBatches {
  private final FeedShard shard;
  private final int epoch;
  private final TaskContext context;
  private final StepDump dump;
  private final Iterator<FeedShard.ShardChunk> chunks;
  private ShardBatch current;
  private int place;
  private boolean closed;

  ShardBatches(FeedShard shard, int epoch, TaskContext context, StepDump dump) {
    this.shard = shard;
    this.epoch = epoch;
    this.dump = dump;
    this.context = context;
    this.chunks = shard.epoch(epoch).iterator();
  }

  @Override
  public boolean hasNext() {
    return !closed && chunks.hasNext();
  }

  @Override
  public FeedBatch next() {
    if (!hasNext()) {
      throw new NoSuchElementException(
          closed ? "these batches were closed" : "the epoch has no more than its steps");
    }
    context.killTaskIfInterrupted();
    letGo();
    FeedShard.ShardChunk chunk = chunks.next();
    dump.step(epoch, place, chunk);
    place++;
    current = new ShardBatch(shard, chunk);
    return current;
  }

  private void letGo() {
    if (current != null) {
      current.letGo();
      current = null;
    }
  }

  @Override
  public void close() {
    closed = true;
    letGo();
  }
}
