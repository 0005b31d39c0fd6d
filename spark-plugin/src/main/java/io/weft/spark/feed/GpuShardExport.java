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
import java.util.HexFormat;
import java.util.List;
import org.apache.spark.TaskContext;

/** Uploads a rank's batches to GPU memory that other processes can map. */
final class GpuShardExport {
  private GpuShardExport() {}

  /**
   * Uploads the batches and keeps them in this executor under a number.
   *
   * @param task of this attempt; if it fails after all, or is killed, the memory is freed
   * @throws IllegalStateException if the executor has no GPU, or too little GPU memory
   * @throws IOException if no lease can be created in the executor's folder
   */
  static GpuFeedExport.Shard write(FeedShard shard, int number, TaskContext task)
      throws IOException {
    List<FeedShard.ShardChunk> batches = shard.epoch(0);
    try (RankGpu gpu = RankGpu.open(shard, task)) {
      long bytes = Math.max(1, batches.size() * gpu.layout().bytes());
      CudaMemory memory = gpu.take(bytes);
      try {
        upload(gpu, batches, memory);
      } catch (RuntimeException | Error e) {
        memory.close();
        throw e;
      }
      return keep(shard, number, task, gpu.gpu().share(memory));
    }
  }

  private static void upload(RankGpu gpu, List<FeedShard.ShardChunk> batches, CudaMemory memory) {
    List<Event> uploads = new ArrayList<>();
    for (int i = 0; i < batches.size(); i++) {
      uploads.add(gpu.upload(batches.get(i), memory, i * gpu.layout().bytes()));
    }
    for (Event upload : uploads) {
      upload.await(gpu.deadline());
    }
  }

  private static GpuFeedExport.Shard keep(
      FeedShard shard, int number, TaskContext task, ExportedMemory run) throws IOException {
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
    return described(shard, here, folder, run.handle());
  }

  private static GpuFeedExport.Shard described(
      FeedShard shard, PeerAddress here, LeasedFolder folder, IpcHandle handle) {
    List<FeedShard.ShardChunk> batches = shard.epoch(0);
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
        batches.size(),
        batches.stream().mapToLong(batch -> batch.view().rows()).sum());
  }
}
