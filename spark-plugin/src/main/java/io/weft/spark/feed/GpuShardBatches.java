package io.weft.spark.feed;

import java.util.Iterator;
import java.util.NoSuchElementException;
import org.apache.spark.TaskContext;

/**
 * One epoch over a shard, on the GPU: one batch is used, the next uploaded. For its task's thread.
 */
final class GpuShardBatches implements GpuFeedBatches {
  private final RankGpu gpu;
  private final int epoch;
  private final TaskContext context;
  private final StepDump dump;
  private final Iterator<FeedShard.ShardChunk> chunks;

  private GpuShardBatch current;
  private GpuShardBatch ahead;
  private int place;
  private boolean closed;

  GpuShardBatches(RankGpu gpu, FeedShard shard, int epoch, TaskContext context, StepDump dump) {
    this.gpu = gpu;
    this.epoch = epoch;
    this.dump = dump;
    this.context = context;
    this.chunks = shard.epoch(epoch).iterator();
  }

  @Override
  public boolean hasNext() {
    return !closed && (ahead != null || chunks.hasNext());
  }

  @Override
  public GpuFeedBatch next() {
    if (!hasNext()) {
      throw new NoSuchElementException(
          closed ? "these batches were closed" : "the epoch has no more than its steps");
    }
    context.killTaskIfInterrupted();
    letGo();
    current = ahead == null ? gpu.upload(chunks.next()) : ahead;
    ahead = chunks.hasNext() ? gpu.upload(chunks.next()) : null;
    dump.step(epoch, place, current.chunk());
    place++;
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
    if (ahead != null) {
      ahead.letGo();
      ahead = null;
    }
  }
}
