package io.weft.spark.feed;

import io.weft.collectives.buffer.TypedBuffer;
import io.weft.device.Event;
import io.weft.device.HostEvent;
import io.weft.device.cuda.CudaStream;
import io.weft.spark.gpu.OpenedGpu;
import io.weft.tensor.TensorType;
import io.weft.tensor.dlpack.Dlpack;
import io.weft.tensor.dlpack.DlpackForm;
import io.weft.tensor.dlpack.DlpackTensor;

/** A batch in the device memory where the exchange put it. Its views are for the task's thread. */
final class DeviceFeedBatch implements GpuFeedBatch, EpochSteps.Held {
  private final DeviceShard shard;
  private final DeviceBatch batch;

  /** The shard owns the memory, so the end of the last hold only ends the right to use it. */
  private final BatchHolds holds = new BatchHolds(() -> {});

  DeviceFeedBatch(DeviceShard shard, DeviceBatch batch) {
    this.shard = shard;
    this.batch = batch;
  }

  @Override
  public int rows() {
    return batch.rows();
  }

  @Override
  public GpuTensor tensor(String column) {
    holds.require();
    GpuBatchLayout.Place place = shard.layout().place(column);
    TensorType type = place.type(rows());
    long address = batch.addresses().get(shard.layout().columns().indexOf(place));
    return new GpuTensor(
        type,
        TypedBuffer.at(address, type.dtype(), type.elements()),
        shard.device().gpu().device().device());
  }

  @Override
  public Event ready() {
    return HostEvent.completed("the exchange of a batch");
  }

  /** All rows have been on the device since the task began. */
  @Override
  public void orderBefore(long stream) {
    holds.require();
  }

  @Override
  public void usedOn(long stream) {
    holds.require();
    CudaStream theirs =
        CudaStream.borrowed(shard.device().gpu().device(), "0x" + Long.toHexString(stream), stream);
    batch.usedUntil(shard.lane().lane().after("the use of a batch", theirs));
  }

  @Override
  public long dlpack(String column, DlpackForm form, long stream) {
    GpuTensor tensor = tensor(column);
    String what = "the use of exported column " + column;
    HostEvent use = new HostEvent(what);
    OpenedGpu opened = shard.device().gpu();
    batch.usedUntil(use);
    try {
      return Dlpack.export(
          form,
          new DlpackTensor(tensor.type(), tensor.buffer().address(), tensor.device(), true),
          () -> opened.afterWork(what, stream, use::complete));
    } catch (RuntimeException | Error e) {
      use.fail(e);
      throw e;
    }
  }

  @Override
  public FeedLease retain() {
    return holds.retain();
  }

  @Override
  public void letGo() {
    holds.letGo();
  }
}
