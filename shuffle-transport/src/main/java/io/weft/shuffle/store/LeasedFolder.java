package io.weft.shuffle.store;

import io.weft.shuffle.store.FolderSweep.ExecutorFiles;
import io.weft.shuffle.store.PrivateFolders.FolderNames;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.Optional;

/**
 * A folder in an executor's folder with files for processes that are not executors. A lease file is
 * next to it. The folder stays while any process has a lock on the lease file ({@code fcntl},
 * shared or exclusive). The operating system releases the lock when that process ends. The executor
 * removes the folder, at its orderly end also if it is locked. If the executor has died, the next
 * sweep removes it when no lock is held.
 *
 * <p>Thread-safe.
 */
public final class LeasedFolder {
  private final Path path;
  private final Path lease;

  private LeasedFolder(Path path, Path lease) {
    this.path = path;
    this.lease = lease;
  }

  /**
   * Creates the folder with access for its owner only.
   *
   * @param executorFolder folder of the executor
   * @param name of the new folder
   * @throws java.nio.file.FileAlreadyExistsException if the name exists
   */
  public static LeasedFolder create(Path executorFolder, String name) throws IOException {
    Path folder = executorFolder.toRealPath();
    Path path = Files.createDirectory(folder.resolve(name), PrivateFolders.FOLDER);
    try {
      Path lease = folder.resolve(FolderNames.LEASE_PREFIX + name);
      return new LeasedFolder(path, Files.createFile(lease, PrivateFolders.FILE));
    } catch (IOException e) {
      Files.deleteIfExists(path);
      throw e;
    }
  }

  /** The path of the folder. */
  public Path path() {
    return path;
  }

  /** The path of the file to lock. */
  public Path lease() {
    return lease;
  }

  /**
   * Creates a file in the folder with access for its owner only.
   *
   * @throws java.nio.file.FileAlreadyExistsException if the name exists
   */
  public Path createFile(String name) throws IOException {
    return Files.createFile(path.resolve(name), PrivateFolders.FILE);
  }

  /**
   * Removes the folder and its contents, unless another process has a lock on its lease.
   *
   * @return whether it was removed
   * @throws IOException as {@link #removeUnlessLocked(Runnable)}
   */
  public boolean removeUnlessLocked() throws IOException {
    return removeUnlessLocked(() -> {});
  }

  /**
   * As {@link #removeUnlessLocked()}, for a lease that also protects another resource.
   *
   * @param free frees that resource. Runs after the lease is removed, so that no process can lock
   *     it, and before the folder is removed. Also runs if removing the folder fails
   * @throws IOException if the lease cannot be locked or removed, in which case nothing is freed,
   *     or if the folder cannot be removed
   */
  public boolean removeUnlessLocked(Runnable free) throws IOException {
    try {
      Optional<LockedFile> seized = LockedFile.seize(lease);
      if (seized.isEmpty()) {
        return false;
      }
      LockedFile lock = seized.get();
      try (lock) {
        remove(free);
      }
    } catch (NoSuchFileException e) {
      remove(free);
    }
    return true;
  }

  private void remove(Runnable free) throws IOException {
    Files.deleteIfExists(lease);
    try {
      free.run();
    } finally {
      ExecutorFiles.removeTree(path);
    }
  }
}
