package io.weft.spark.feed;

import io.weft.collectives.TypedBuffer;
import io.weft.device.Deadline;
import io.weft.device.Event;
import io.weft.device.HostEvent;
import io.weft.device.cuda.CudaLane;
import io.weft.device.cuda.CudaStream;
import io.weft.spark.feed.EpochSteps.BatchReferences;
import io.weft.spark.gpu.SharedGpu;
import io.weft.tensor.TensorType;
import io.weft.tensor.dlpack.Dlpack;
import io.weft.tensor.dlpack.DlpackForm;
import io.weft.tensor.dlpack.DlpackTensor;

/**
 * The views of a batch in GPU memory. A subclass provides the memory. Views are for the task's
 * thread, leases for any thread.
 */
abstract class GpuBatchView implements GpuFeedBatch, EpochSteps.Held {
  private final SharedGpu gpu;
  private final GpuBatchLayout layout;
  private final boolean readOnly;
  private final BatchReferences holds;

  /**
   * Views a batch.
   *
   * @param readOnly whether other epochs read the same memory
   * @param end runs when the last hold ends
   */
  GpuBatchView(SharedGpu gpu, GpuBatchLayout layout, boolean readOnly, Runnable end) {
    this.gpu = gpu;
    this.layout = layout;
    this.readOnly = readOnly;
    this.holds = new BatchReferences(end);
  }

  /** Address of a column in device memory. */
  abstract long address(GpuBatchLayout.Place place);

  /** Keeps the memory until the event has completed. */
  abstract void usedUntil(Event event);

  /** The lane that streams of the rank are ordered behind. */
  abstract CudaLane lane();

  @Override
  public GpuTensor tensor(String column) {
    holds.require();
    GpuBatchLayout.Place place = layout.place(column);
    TensorType type = place.type(rows());
    return new GpuTensor(
        type, TypedBuffer.at(address(place), type.dtype(), type.elements()), gpu.device().device());
  }

  @Override
  public void orderBefore(long stream) {
    holds.require();
    CudaLane.order(ready(), stream(stream), deadline());
  }

  @Override
  public void usedOn(long stream) {
    holds.require();
    usedUntil(lane().after("the use of a batch", stream(stream)));
  }

  private CudaStream stream(long handle) {
    return CudaStream.borrowed(gpu.device(), "0x" + Long.toHexString(handle), handle);
  }

  private Deadline deadline() {
    return Deadline.after(gpu.timeout());
  }

  @Override
  public long dlpack(String column, DlpackForm form, long stream) {
    GpuTensor tensor = tensor(column);
    ready().await(deadline());
    String what = "the use of exported column " + column;
    HostEvent use = new HostEvent(what);
    usedUntil(use);
    try {
      return Dlpack.export(
          form,
          new DlpackTensor(tensor.type(), tensor.buffer().address(), tensor.device(), readOnly),
          () -> gpu.afterWork(what, stream, use::complete));
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
  public void release() {
    holds.release();
  }

  final BatchReferences holds() {
    return holds;
  }
}
