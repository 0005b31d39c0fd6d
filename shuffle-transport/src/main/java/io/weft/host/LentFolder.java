package io.weft.host;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.Optional;

/**
 * A folder in an executor's folder with files for processes that are not executors. A lease file is
 * next to it. The folder stays while any process has a lock on the lease file ({@code fcntl},
 * shared or exclusive). The operating system releases the lock when that process ends. The executor
 * removes the folder. If the executor has died, the next sweep removes it when no lock is held.
 *
 * <p>Thread-safe.
 */
public final class LentFolder {
  private final Path path;
  private final Path lease;

  private LentFolder(Path path, Path lease) {
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
  public static LentFolder create(Path executorFolder, String name) throws IOException {
    Path folder = executorFolder.toRealPath();
    Path path = Files.createDirectory(folder.resolve(name), OwnedFolders.FOLDER);
    try {
      Path lease = folder.resolve(Names.LEASE_PREFIX + name);
      return new LentFolder(path, Files.createFile(lease, OwnedFolders.FILE));
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
    return Files.createFile(path.resolve(name), OwnedFolders.FILE);
  }

  /**
   * Removes the folder and its contents, unless another process has a lock on its lease.
   *
   * @return whether it was removed
   * @throws IOException as {@link #removeUnlessHeld(Runnable)}
   */
  public boolean removeUnlessHeld() throws IOException {
    return removeUnlessHeld(() -> {});
  }

  /**
   * As {@link #removeUnlessHeld()}, for a lease that also protects another resource.
   *
   * @param free frees that resource. Runs after the lease is removed, so that no process can lock
   *     it, and before the folder is removed. Also runs if removing the folder fails
   * @throws IOException if the lease cannot be locked or removed, in which case nothing is freed,
   *     or if the folder cannot be removed
   */
  public boolean removeUnlessHeld(Runnable free) throws IOException {
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
