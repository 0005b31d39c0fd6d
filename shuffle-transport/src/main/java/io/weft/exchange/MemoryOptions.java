package io.weft.exchange;

import io.weft.host.HostRoot;
import io.weft.memory.ArenaOptions;
import io.weft.memory.PrivateMemory;
import io.weft.memory.SettingNames;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;

/**
 * The memory options of an executor's exchange.
 *
 * @param folder for segments; empty to choose shared memory, or the first local folder without it
 * @param localDirs Spark's local folders, at least one, for segments beyond the memory budget
 * @param segmentBytes size of a segment, at least 64 KiB
 * @param memoryBytes budget in shared memory, or 0 for the smaller of 4 GiB and a quarter of the
 *     file system
 * @param diskBytes budget in the local folders
 * @param marginBytes to leave free in the shared memory file system
 * @param encryption of the local folders; empty if they are not encrypted
 */
public record MemoryOptions(
    Optional<Path> folder,
    List<Path> localDirs,
    long segmentBytes,
    long memoryBytes,
    long diskBytes,
    long marginBytes,
    Optional<DiskEncryption> encryption) {
  private static final long MAX_AUTOMATIC_BYTES = 4L << 30;

  public MemoryOptions {
    localDirs = List.copyOf(localDirs);
    if (localDirs.isEmpty()) {
      throw new IllegalArgumentException("localDirs: at least one folder is needed");
    }
    if (segmentBytes < 64 << 10) {
      throw new IllegalArgumentException("segmentBytes: " + segmentBytes + " is below 64 KiB");
    }
    if (memoryBytes < 0 || diskBytes < 0 || marginBytes < 0) {
      throw new IllegalArgumentException(
          "negative budget: memory "
              + memoryBytes
              + ", disk "
              + diskBytes
              + ", margin "
              + marginBytes);
    }
  }

  /** The options of the arena. */
  ArenaOptions arena(Path executorFolder, HostRoot root, SettingNames names) throws IOException {
    return new ArenaOptions(
        executorFolder,
        localDirs,
        segmentBytes,
        budget(root),
        diskBytes,
        marginBytes,
        encryption.map(DiskEncryption::memory).orElse(PrivateMemory.NONE),
        names);
  }

  /** The memory budget. It is 0 if encryption is on and the root is on a disk. */
  private long budget(HostRoot root) throws IOException {
    if (encryption.isPresent() && !root.sharedMemory()) {
      return 0;
    }
    return memoryBytes > 0 ? memoryBytes : automaticBytes(root.path());
  }

  /**
   * The default budget in shared memory: the smaller of 4 GiB and a quarter of the file system.
   *
   * @param root a folder on it
   */
  public static long automaticBytes(Path root) throws IOException {
    return Math.min(MAX_AUTOMATIC_BYTES, Files.getFileStore(root).getTotalSpace() / 4);
  }
}
