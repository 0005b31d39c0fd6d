package io.weft.spark.feed;

import io.weft.shuffle.peer.PeerAddress;
import io.weft.shuffle.store.LeasedFolder;
import io.weft.spark.config.WeftSettings;
import io.weft.spark.feed.arrow.ShardFile;
import io.weft.spark.runtime.FeedCounters;
import io.weft.spark.runtime.FeedCounters.FeedCounter;
import io.weft.spark.runtime.LentFolders;
import io.weft.spark.runtime.UnencryptedDiskException;
import io.weft.spark.runtime.WeftExecutor;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext;
import org.apache.spark.util.TaskCompletionListener;

/** Writes a rank's batches to a file for other processes. */
final class ShardExport {
  private ShardExport() {}

  /**
   * Writes the file and keeps it in this executor under a number.
   *
   * @param task of this attempt. An earlier attempt may have left a file; if this attempt fails
   *     after all, or is killed, its file is deleted
   * @throws IOException if the executor's folder cannot be written
   * @throws UnencryptedDiskException if it is on a disk and must be encrypted
   */
  static FeedExport.Shard write(FeedShard shard, int number, TaskContext task) throws IOException {
    PeerAddress here = WeftExecutor.exchange().address();
    requireMemoryOrPlainDisk(here);
    String name = "feed-%d-rank-%d-task-%d".formatted(number, shard.rank(), task.taskAttemptId());
    try {
      LeasedFolder folder = LeasedFolder.create(Path.of(here.folder()), name);
      FeedExport.Shard written = write(shard, number, here, folder);
      releaseIfFailed(task, number, folder);
      return written;
    } catch (IOException e) {
      throw unwritten(shard, here, e);
    }
  }

  /**
   * Releases an exported folder if the task's attempt fails after all, or is killed: its result
   * does not reach the driver, which may also have released the number already.
   */
  static void releaseIfFailed(TaskContext task, int number, LeasedFolder folder) {
    task.addTaskCompletionListener(
        (TaskCompletionListener)
            ended -> {
              if (ended.isFailed() || ended.isInterrupted()) {
                LentFolders.release(number, folder);
              }
            });
  }

  /**
   * Rejects a folder on an unencrypted disk if all other files in the executor's folder are
   * encrypted.
   */
  private static void requireMemoryOrPlainDisk(PeerAddress here) {
    boolean encrypted = WeftSettings.isDiskEncrypted(SparkEnv.get().conf());
    if (encrypted && !WeftExecutor.exchange().isInMemory()) {
      throw new UnencryptedDiskException(here.executorId(), "the exported file", here.folder());
    }
  }

  private static FeedExport.Shard write(
      FeedShard shard, int number, PeerAddress here, LeasedFolder folder) throws IOException {
    try {
      Path file = folder.createFile("rank-" + shard.rank() + ".arrow");
      FeedExport.Shard written = write(shard, here, folder, file);
      LentFolders.keep(number, folder);
      FeedCounters.add(FeedCounter.FILES_EXPORTED, 1);
      FeedCounters.add(FeedCounter.BYTES_EXPORTED, written.bytes());
      return written;
    } catch (IOException | RuntimeException | Error e) {
      remove(folder, e);
      throw e;
    }
  }

  private static void remove(LeasedFolder folder, Throwable cause) {
    try {
      boolean unused = folder.removeUnlessLocked();
    } catch (IOException e) {
      cause.addSuppressed(e);
    }
  }

  private static IOException unwritten(FeedShard shard, PeerAddress here, IOException cause) {
    return new IOException(
        "the batches of rank %d could not be written to %s: %s"
            .formatted(shard.rank(), here.folder(), cause),
        cause);
  }

  private static FeedExport.Shard write(
      FeedShard shard, PeerAddress here, LeasedFolder folder, Path file) throws IOException {
    List<FeedShard.ShardChunk> batches = shard.epoch(0);
    long rows = 0;
    try (ShardFile out = ShardFile.start(file, shard.spec().schema())) {
      for (FeedShard.ShardChunk batch : batches) {
        out.add(batch.view());
        rows += batch.view().rows();
      }
      out.finish();
      return new FeedExport.Shard(
          shard.rank(),
          here.host(),
          here.executorId(),
          file.toString(),
          folder.lease().toString(),
          batches.size(),
          rows,
          out.bytes());
    }
  }
}
