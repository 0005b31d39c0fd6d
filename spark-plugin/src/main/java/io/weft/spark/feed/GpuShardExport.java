package io.weft.spark.feed;

import io.weft.device.Event;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.IpcHandle;
import io.weft.shuffle.peer.PeerAddress;
import io.weft.shuffle.store.LeasedFolder;
import io.weft.spark.gpu.SharedGpu.ExportedMemory;
import io.weft.spark.runtime.LentFolders;
import io.weft.spark.runtime.WeftExecutor;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import org.apache.spark.BarrierTaskContext;
import org.apache.spark.BarrierTaskInfo;
import org.apache.spark.TaskContext;

/** Puts a rank's batches into GPU memory that other processes can map. */
final class GpuShardExport {
  private GpuShardExport() {}

  /** What a shard's memory holds. */
  private record Content(int batches, long rows) {}

  /**
   * Copies or uploads the batches, and keeps them in this executor under a number.
   *
   * @param task of this attempt; if it fails after all, or is killed, the memory is freed
   * @throws IllegalStateException if the executor has no GPU, or too little GPU memory
   * @throws IOException if no lease can be created in the executor's folder
   */
  static GpuFeedExport.Shard write(FeedShard shard, int number, BarrierTaskContext task)
      throws IOException {
    try (RankGpu gpu = RankGpu.open(shard, task)) {
      long bytes = Math.max(1, shard.steps() * gpu.layout().bytes());
      // The memory of other ranks stays, so a wait for it is in vain.
      gpu.requireFits(ranksHere(task), bytes);
      CudaMemory memory = gpu.take(bytes);
      Content content;
      try {
        content =
            shard.onDevice() == null
                ? upload(gpu, shard.epoch(0), memory)
                : copy(gpu, shard, memory);
      } catch (RuntimeException | Error e) {
        memory.close();
        throw e;
      }
      return keep(shard, content, number, task, gpu.gpu().share(memory));
    }
  }

  /** The ranks in this executor; all ranks need the same memory. */
  private static int ranksHere(BarrierTaskContext task) {
    BarrierTaskInfo[] all = task.getTaskInfos();
    String here = all[task.partitionId()].address();
    return (int) Arrays.stream(all).filter(each -> each.address().equals(here)).count();
  }

  /** Copies batches whose rows are on the device. They need no other memory. */
  private static Content copy(RankGpu gpu, FeedShard shard, CudaMemory memory) {
    List<FeedPlan.Batch> planned = shard.plan().rank(shard.rank());
    List<FeedPlan.Batch> batches =
        shard.plan().order(shard.rank(), 0).stream().map(planned::get).toList();
    shard.onDevice().copy(batches, memory).await(gpu.deadline());
    return new Content(batches.size(), batches.stream().mapToLong(FeedPlan.Batch::rows).sum());
  }

  private static Content upload(
      RankGpu gpu, List<FeedShard.ShardChunk> batches, CudaMemory memory) {
    List<Event> uploads = new ArrayList<>();
    for (int i = 0; i < batches.size(); i++) {
      uploads.add(gpu.upload(batches.get(i), memory, i * gpu.layout().bytes()));
    }
    for (Event upload : uploads) {
      upload.await(gpu.deadline());
    }
    return new Content(
        batches.size(), batches.stream().mapToLong(batch -> batch.view().rows()).sum());
  }

  private static GpuFeedExport.Shard keep(
      FeedShard shard, Content content, int number, TaskContext task, ExportedMemory run)
      throws IOException {
    PeerAddress here = WeftExecutor.exchange().address();
    String name =
        "feed-%d-rank-%d-task-%d-gpu".formatted(number, shard.rank(), task.taskAttemptId());
    LeasedFolder folder;
    try {
      folder = LeasedFolder.create(Path.of(here.folder()), name);
    } catch (IOException e) {
      run.close();
      throw new IOException(
          "rank %d could not write a lease in %s: %s".formatted(shard.rank(), here.folder(), e), e);
    }
    LentFolders.keep(number, folder, run::close);
    ShardExport.releaseIfFailed(task, number, folder);
    return described(shard, content, here, folder, run.handle());
  }

  private static GpuFeedExport.Shard described(
      FeedShard shard, Content content, PeerAddress here, LeasedFolder folder, IpcHandle handle) {
    return new GpuFeedExport.Shard(
        shard.rank(),
        here.host(),
        here.executorId(),
        folder.lease().toString(),
        handle.pid(),
        handle.gpu().toString(),
        HexFormat.of().formatHex(handle.handle()),
        handle.offset(),
        handle.bytes(),
        content.batches(),
        content.rows());
  }
}
