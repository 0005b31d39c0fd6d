package io.weft.spark.feed;

import io.weft.collectives.Communicator;
import io.weft.spark.collectives.WeftCollectives;
import io.weft.spark.feed.RankGpu.GpuShardBatches;
import io.weft.spark.gpu.ExecutorGpu;
import java.util.Optional;
import org.apache.spark.BarrierTaskContext;

/** A rank's task in {@link WeftFeed#train}. For the task's thread. */
final class RankTask implements FeedTask, AutoCloseable {
  private final FeedShard shard;
  private final BarrierTaskContext context;
  private final StepDump dump;
  private ShardBatches open;
  private RankGpu gpu;
  private GpuFeedBatches openOnGpu;

  RankTask(FeedShard shard, BarrierTaskContext context) {
    this.shard = shard;
    this.context = context;
    this.dump = new StepDump(shard);
  }

  @Override
  public Communicator communicator() {
    return WeftCollectives.communicator(context);
  }

  @Override
  public int rank() {
    return shard.rank();
  }

  @Override
  public int ranks() {
    return shard.spec().ranks();
  }

  @Override
  public long steps() {
    return shard.steps();
  }

  @Override
  public FeedBatches batches(int epoch) {
    requireEpoch(epoch);
    if (shard.onDevice() != null) {
      throw new IllegalStateException(
          "the rows of this feed moved from GPU to GPU and stay there: see gpuBatches");
    }
    closeEpoch();
    open = new ShardBatches(shard, epoch, context, dump);
    return open;
  }

  private static void requireEpoch(int epoch) {
    if (epoch < 0) {
      throw new IllegalArgumentException("epochs are counted from 0, not " + epoch);
    }
  }

  @Override
  public Optional<String> gpuObstacle() {
    return ExecutorGpu.current().obstacle();
  }

  @Override
  public GpuFeedBatches gpuBatches(int epoch) {
    requireEpoch(epoch);
    closeEpoch();
    openOnGpu =
        shard.onDevice() == null ? uploads(epoch) : new DeviceBatches(shard, epoch, context, dump);
    return openOnGpu;
  }

  private GpuFeedBatches uploads(int epoch) {
    if (gpu == null) {
      gpu = RankGpu.open(shard, context);
    }
    return new GpuShardBatches(gpu, shard, epoch, context, dump);
  }

  /** Runs the rank's function with this task as its argument. */
  <T> T run(FeedFunction<T> function) throws Exception {
    try {
      return function.run(this);
    } catch (Exception | Error e) {
      dump.failed(e);
      throw e;
    }
  }

  @Override
  public void close() {
    closeEpoch();
    dump.close();
    if (gpu != null) {
      gpu.close();
    }
  }

  private void closeEpoch() {
    if (open != null) {
      open.close();
    }
    if (openOnGpu != null) {
      openOnGpu.close();
    }
  }
}
