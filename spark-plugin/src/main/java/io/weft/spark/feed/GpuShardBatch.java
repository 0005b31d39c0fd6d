package io.weft.spark.feed;

import io.weft.device.Event;
import io.weft.device.cuda.CudaLane;
import io.weft.device.cuda.CudaMemory;

/**
 * A batch of a shard, uploaded to the GPU. The end of the last hold frees the memory once it is not
 * in use.
 */
final class GpuShardBatch extends GpuBatchView {
  private final RankGpu gpu;
  private final FeedShard.ShardChunk chunk;
  private final CudaMemory memory;
  private final Event ready;

  private GpuShardBatch(RankGpu gpu, FeedShard.ShardChunk chunk, CudaMemory memory, Event ready) {
    super(gpu.gpu(), gpu.layout(), false, memory::close);
    this.gpu = gpu;
    this.chunk = chunk;
    this.memory = memory;
    this.ready = ready;
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
  long address(GpuBatchLayout.Place place) {
    return memory.address() + place.offset();
  }

  @Override
  public Event ready() {
    return ready;
  }

  @Override
  void usedUntil(Event event) {
    memory.usedUntil(event);
  }

  @Override
  CudaLane lane() {
    return gpu.uploads().lane();
  }

  /** Returns whether the last hold has ended. */
  boolean isOver() {
    return holds().isOver();
  }

  /** Ends all holds; called at the end of the task. */
  void end() {
    holds().endAll();
  }
}
