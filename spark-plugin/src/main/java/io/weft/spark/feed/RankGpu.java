package io.weft.spark.feed;

import io.weft.device.Deadline;
import io.weft.device.Event;
import io.weft.device.cuda.CudaLane;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.DeviceUploads;
import io.weft.spark.gpu.ExecutorGpu;
import io.weft.spark.gpu.SharedGpu;
import io.weft.spark.runtime.FeedCounters;
import io.weft.spark.runtime.FeedCounters.FeedCounter;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import org.apache.spark.TaskContext;

/** A rank's resources on its executor's GPU, closed with the task. For the task's thread. */
final class RankGpu implements AutoCloseable {
  private final SharedGpu gpu;
  private final DeviceUploads uploads;
  private final GpuBatchLayout layout;
  private final TaskContext context;
  private final String rank;

  /** Batches that are in use or leased. */
  private final List<GpuShardBatch> batches = new ArrayList<>();

  private RankGpu(SharedGpu gpu, GpuBatchLayout layout, TaskContext context, FeedShard shard) {
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

  SharedGpu gpu() {
    return gpu;
  }

  DeviceUploads uploads() {
    return uploads;
  }

  GpuBatchLayout layout() {
    return layout;
  }

  /**
   * Fails at once if the ranks of this executor cannot have so much memory each.
   *
   * @param ranks of this executor
   */
  void requireFits(int ranks, long bytes) {
    try {
      gpu.requireFits(Math.multiplyExact(ranks, bytes));
    } catch (IllegalStateException e) {
      String who = ranks == 1 ? rank : "%s and %d more on its executor".formatted(rank, ranks - 1);
      throw new IllegalStateException(who + ": " + e.getMessage(), e);
    }
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

  /**
   * A batch of a shard, uploaded to the GPU. The end of the last hold frees the memory once it is
   * not in use.
   */
  static final class GpuShardBatch extends GpuBatchView {
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
      holds().releaseAll();
    }
  }

  /**
   * One epoch over a shard, on the GPU: the next batch is uploaded while one is in use. For its
   * task's thread.
   */
  static final class GpuShardBatches extends EpochSteps<GpuShardBatch> implements GpuFeedBatches {
    private final RankGpu gpu;
    private final int epoch;
    private final StepDump dump;
    private final Iterator<FeedShard.ShardChunk> chunks;
    private GpuShardBatch ahead;

    GpuShardBatches(RankGpu gpu, FeedShard shard, int epoch, TaskContext context, StepDump dump) {
      super(context);
      this.gpu = gpu;
      this.epoch = epoch;
      this.dump = dump;
      this.chunks = shard.epoch(epoch).iterator();
    }

    @Override
    boolean hasMore() {
      return ahead != null || chunks.hasNext();
    }

    @Override
    GpuShardBatch take(int step) {
      GpuShardBatch batch = ahead == null ? gpu.upload(chunks.next()) : ahead;
      ahead = chunks.hasNext() ? gpu.upload(chunks.next()) : null;
      dump.step(epoch, step, batch.chunk());
      return batch;
    }

    @Override
    public void close() {
      super.close();
      if (ahead != null) {
        ahead.release();
        ahead = null;
      }
    }
  }
}
