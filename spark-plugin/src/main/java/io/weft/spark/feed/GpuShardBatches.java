package io.weft.spark.feed;

import java.util.Iterator;
import org.apache.spark.TaskContext;

/**
 * One epoch over a shard, on the GPU: the next batch is uploaded while one is in use. For its
 * task's thread.
 */
final class GpuShardBatches extends EpochSteps<GpuShardBatch> implements GpuFeedBatches {
  private final RankGpu gpu;
  private final int epoch;
  private final StepDump dump;
  private final Iterator<FeedShard.ShardChunk> chunks;
  private GpuShardBatch ahead;

  GpuShardBatches(RankGpu gpu, FeedShard shard, int epoch, TaskContext context, StepDump dump) {
    super(context);
    this.gpu = gpu;
    this.epoch = epoch;
    this.dump = dump;
    this.chunks = shard.epoch(epoch).iterator();
  }

  @Override
  boolean hasMore() {
    return ahead != null || chunks.hasNext();
  }

  @Override
  GpuShardBatch take(int step) {
    GpuShardBatch batch = ahead == null ? gpu.upload(chunks.next()) : ahead;
    ahead = chunks.hasNext() ? gpu.upload(chunks.next()) : null;
    dump.step(epoch, step, batch.chunk());
    return batch;
  }

  @Override
  public void close() {
    super.close();
    if (ahead != null) {
      ahead.letGo();
      ahead = null;
    }
  }
}
