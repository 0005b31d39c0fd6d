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
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;

/** A batch that lies where it was exchanged to. Its views are for the task's thread. */
final class DeviceFeedBatch implements GpuFeedBatch {
  private final DeviceShard shard;
  private final DeviceBatch batch;

  /** The epoch's hold, and one for each lease. */
  private final AtomicInteger holds = new AtomicInteger(1);

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
    requireHeld();
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

  /** All rows are there since the task began. */
  @Override
  public void orderBefore(long stream) {
    requireHeld();
  }

  @Override
  public void usedOn(long stream) {
    requireHeld();
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

  /** The memory is the shard's; what ends is the right to use it. */
  @Override
  public FeedLease retain() {
    int before = holds.getAndUpdate(count -> count == 0 ? 0 : count + 1);
    if (before == 0) {
      throw over();
    }
    AtomicBoolean closed = new AtomicBoolean();
    return () -> {
      if (!closed.getAndSet(true)) {
        letGo();
      }
    };
  }

  private void requireHeld() {
    if (holds.get() == 0) {
      throw over();
    }
  }

  private static IllegalStateException over() {
    return new IllegalStateException(
        "the batch is over: it is valid until the next one, retain() keeps it longer");
  }

  /** One hold less. */
  void letGo() {
    int unused = holds.getAndUpdate(count -> Math.max(0, count - 1));
  }
}
