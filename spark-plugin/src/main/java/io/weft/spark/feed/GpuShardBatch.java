package io.weft.spark.feed;

import io.weft.collectives.buffer.TypedBuffer;
import io.weft.device.Event;
import io.weft.device.HostEvent;
import io.weft.device.cuda.CudaLane;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.CudaStream;
import io.weft.spark.gpu.OpenedGpu;
import io.weft.tensor.TensorType;
import io.weft.tensor.dlpack.Dlpack;
import io.weft.tensor.dlpack.DlpackForm;
import io.weft.tensor.dlpack.DlpackTensor;

/** A batch of a shard, uploaded to the GPU. Its views are for the task's thread, leases for any. */
final class GpuShardBatch implements GpuFeedBatch, EpochSteps.Held {
  private final RankGpu gpu;
  private final FeedShard.ShardChunk chunk;
  private final CudaMemory memory;
  private final Event ready;

  /** The end of the last hold frees the memory once it is not in use. */
  private final BatchHolds holds;

  private GpuShardBatch(RankGpu gpu, FeedShard.ShardChunk chunk, CudaMemory memory, Event ready) {
    this.gpu = gpu;
    this.chunk = chunk;
    this.memory = memory;
    this.ready = ready;
    this.holds = new BatchHolds(memory::close);
  }

  /** Starts the upload of a batch. */
  static GpuShardBatch upload(RankGpu gpu, FeedShard.ShardChunk chunk) {
    CudaMemory memory = gpu.take(Math.max(1, gpu.layout().bytes()));
    try {
      return new GpuShardBatch(gpu, chunk, memory, gpu.upload(chunk, memory, 0));
    } catch (RuntimeException | Error e) {
      memory.close();
      throw e;
    }
  }

  /** The source of the upload; it must stay valid until the upload is recorded. */
  FeedShard.ShardChunk chunk() {
    return chunk;
  }

  @Override
  public int rows() {
    return chunk.view().rows();
  }

  @Override
  public GpuTensor tensor(String column) {
    holds.require();
    GpuBatchLayout.Place place = gpu.layout().place(column);
    TensorType type = place.type(rows());
    TypedBuffer buffer =
        TypedBuffer.at(memory.address() + place.offset(), type.dtype(), type.elements());
    return new GpuTensor(type, buffer, gpu.gpu().device().device());
  }

  @Override
  public Event ready() {
    return ready;
  }

  @Override
  public void orderBefore(long stream) {
    holds.require();
    CudaLane.order(ready, stream(stream), gpu.deadline());
  }

  @Override
  public void usedOn(long stream) {
    holds.require();
    memory.usedUntil(gpu.uploads().lane().after("the use of a batch", stream(stream)));
  }

  private CudaStream stream(long handle) {
    return CudaStream.borrowed(gpu.gpu().device(), "0x" + Long.toHexString(handle), handle);
  }

  @Override
  public long dlpack(String column, DlpackForm form, long stream) {
    GpuTensor tensor = tensor(column);
    ready.await(gpu.deadline());
    String what = "the use of exported column " + column;
    HostEvent use = new HostEvent(what);
    OpenedGpu opened = gpu.gpu();
    memory.usedUntil(use);
    try {
      return Dlpack.export(
          form,
          new DlpackTensor(tensor.type(), tensor.buffer().address(), tensor.device(), false),
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

  /** Returns whether the last hold has ended. */
  boolean isOver() {
    return holds.isOver();
  }

  @Override
  public void letGo() {
    holds.letGo();
  }

  /** Ends all holds; called at the end of the task. */
  void end() {
    holds.endAll();
  }
}
