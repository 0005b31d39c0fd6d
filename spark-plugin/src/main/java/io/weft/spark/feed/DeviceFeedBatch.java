package io.weft.spark.feed;

import io.weft.device.Event;
import io.weft.device.HostEvent;
import io.weft.device.cuda.CudaLane;
import io.weft.spark.feed.DeviceShard.ExchangedBatch;

/**
 * A batch in the device memory where the exchange put it. The shard owns the memory, so the end of
 * the last hold only ends the right to use it.
 */
final class DeviceFeedBatch extends GpuBatchView {
  private final DeviceShard shard;
  private final ExchangedBatch batch;

  DeviceFeedBatch(DeviceShard shard, ExchangedBatch batch) {
    super(shard.device().gpu(), shard.layout(), true, () -> {});
    this.shard = shard;
    this.batch = batch;
  }

  @Override
  public int rows() {
    return batch.rows();
  }

  @Override
  long address(GpuBatchLayout.Place place) {
    return batch.addresses().get(shard.layout().columns().indexOf(place));
  }

  @Override
  public Event ready() {
    return HostEvent.completed("the exchange of a batch");
  }

  /** All rows have been on the device since the task began. */
  @Override
  public void orderBefore(long stream) {
    holds().require();
  }

  @Override
  void usedUntil(Event event) {
    batch.usedUntil(event);
  }

  @Override
  CudaLane lane() {
    return shard.lane().lane();
  }
}
