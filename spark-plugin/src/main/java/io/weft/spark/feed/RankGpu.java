package io.weft.spark.feed;

import io.weft.device.Deadline;
import io.weft.device.Event;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.DeviceUploads;
import io.weft.spark.gpu.ExecutorGpu;
import io.weft.spark.gpu.OpenedGpu;
import io.weft.spark.metrics.FeedCounter;
import io.weft.spark.metrics.FeedCounters;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.TaskContext;

/** A rank's resources on its executor's GPU, closed with the task. For the task's thread. */
final class RankGpu implements AutoCloseable {
  private final OpenedGpu gpu;
  private final DeviceUploads uploads;
  private final GpuBatchLayout layout;
  private final TaskContext context;
  private final String rank;

  /** Batches that are in use or leased. */
  private final List<GpuShardBatch> batches = new ArrayList<>();

  private RankGpu(OpenedGpu gpu, GpuBatchLayout layout, TaskContext context, FeedShard shard) {
    this.gpu = gpu;
    this.layout = layout;
    this.context = context;
    this.rank = "rank " + shard.rank() + " of feed " + shard.feed();
    this.uploads = gpu.uploads("feed-%d-rank-%d-upload".formatted(shard.feed(), shard.rank()));
  }

  /**
   * Opens the GPU for a rank.
   *
   * @throws IllegalStateException if there is none, with the reason
   * @throws IllegalArgumentException if the feed has no columns for a GPU
   */
  static RankGpu open(FeedShard shard, TaskContext context) {
    GpuBatchLayout layout = GpuBatchLayout.of(shard.spec());
    return new RankGpu(ExecutorGpu.current().open(), layout, context, shard);
  }

  OpenedGpu gpu() {
    return gpu;
  }

  DeviceUploads uploads() {
    return uploads;
  }

  GpuBatchLayout layout() {
    return layout;
  }

  /** Allocates memory; waits while others use up the budget. */
  CudaMemory take(long bytes) {
    try {
      return gpu.take(bytes, context::killTaskIfInterrupted);
    } catch (IllegalStateException e) {
      throw new IllegalStateException(rank + ": " + e.getMessage(), e);
    }
  }

  /** Uploads a batch to an offset in memory; the memory must have room for it. */
  Event upload(FeedShard.ShardChunk batch, CudaMemory to, long start) {
    List<DeviceUploads.Run> runs = layout.runs(batch.view(), start);
    Event event = uploads.upload("the upload of a batch of " + rank, runs, to);
    FeedCounters.add(FeedCounter.GPU_BATCHES, 1);
    FeedCounters.add(
        FeedCounter.GPU_BYTES, runs.stream().mapToLong(DeviceUploads.Run::bytes).sum());
    return event;
  }

  /** Starts the upload of a batch, which ends with this object at the latest. */
  GpuShardBatch upload(FeedShard.ShardChunk chunk) {
    GpuShardBatch batch = GpuShardBatch.upload(this, chunk);
    batches.removeIf(GpuShardBatch::isOver);
    batches.add(batch);
    return batch;
  }

  /** Returns a new deadline for device operations. */
  Deadline deadline() {
    return Deadline.after(gpu.timeout());
  }

  @Override
  public void close() {
    batches.forEach(GpuShardBatch::end);
    uploads.close();
  }
}
