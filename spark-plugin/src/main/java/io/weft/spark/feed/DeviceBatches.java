package io.weft.spark.feed;

import io.weft.spark.feed.DeviceShard.ExchangedBatch;
import java.util.Iterator;
import org.apache.spark.TaskContext;

/** One epoch over a shard in device memory. For its task's thread. */
final class DeviceBatches extends EpochSteps<DeviceFeedBatch> implements GpuFeedBatches {
  private final DeviceShard shard;
  private final int epoch;
  private final StepDump dump;
  private final Iterator<Integer> order;

  DeviceBatches(FeedShard shard, int epoch, TaskContext context, StepDump dump) {
    super(context);
    this.epoch = epoch;
    this.dump = dump;
    this.shard = shard.onDevice();
    this.order = shard.plan().order(shard.rank(), epoch).iterator();
  }

  @Override
  boolean hasMore() {
    return order.hasNext();
  }

  @Override
  DeviceFeedBatch take(int step) {
    ExchangedBatch batch = shard.batches().get(order.next());
    dump.stepOnDevice(epoch, step, batch);
    return new DeviceFeedBatch(shard, batch);
  }
}
