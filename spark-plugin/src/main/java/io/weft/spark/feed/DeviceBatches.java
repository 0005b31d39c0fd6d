package io.weft.spark.feed;

import java.util.Iterator;
import java.util.NoSuchElementException;
import org.apache.spark.TaskContext;

/** One epoch over a shard that lies on the device. For its task's thread. */
final class DeviceBatches implements GpuFeedBatches {
  private final DeviceShard shard;
  private final int epoch;
  private final StepDump dump;
  private final TaskContext context;
  private final Iterator<Integer> order;
  private DeviceFeedBatch current;
  private int place;
  private boolean closed;

  DeviceBatches(FeedShard shard, int epoch, TaskContext context, StepDump dump) {
    this.epoch = epoch;
    this.dump = dump;
    this.shard = shard.onDevice();
    this.context = context;
    this.order = shard.plan().order(shard.rank(), epoch).iterator();
  }

  @Override
  public boolean hasNext() {
    return !closed && order.hasNext();
  }

  @Override
  public GpuFeedBatch next() {
    if (!hasNext()) {
      throw new NoSuchElementException(
          closed ? "these batches were closed" : "the epoch has no more than its steps");
    }
    context.killTaskIfInterrupted();
    letGo();
    DeviceBatch batch = shard.batches().get(order.next());
    dump.stepOnDevice(epoch, place, batch);
    place++;
    current = new DeviceFeedBatch(shard, batch);
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
