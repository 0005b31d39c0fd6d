package io.weft.host;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.Optional;

/**
 * A folder in an executor's folder with files for processes that are no executors. Beside it lies a
 * lease file: whoever has a lock on that ({@code fcntl}, shared or exclusive) keeps the folder, and
 * the system drops the lock when the process ends, however it ends. Whoever made it removes it;
 * when the executor has died, the next sweep does, once nobody has a lock.
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
   * Makes the folder, which only its owner may enter.
   *
   * @param executorFolder the executor's
   * @param name of the new folder
   * @throws java.nio.file.FileAlreadyExistsException if there is one
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

  /** The folder. */
  public Path path() {
    return path;
  }

  /** The file to lock. */
  public Path lease() {
    return lease;
  }

  /**
   * Makes a file in the folder, which only its owner may read.
   *
   * @throws java.nio.file.FileAlreadyExistsException if there is one
   */
  public Path createFile(String name) throws IOException {
    return Files.createFile(path.resolve(name), OwnedFolders.FILE);
  }

  /**
   * Removes the folder and what is in it, unless another process has a lock on its lease.
   *
   * @return whether it is gone
   * @throws IOException as {@link #removeUnlessHeld(Runnable)}
   */
  public boolean removeUnlessHeld() throws IOException {
    return removeUnlessHeld(() -> {});
  }

  /**
   * As {@link #removeUnlessHeld()}, where the lease keeps something else, too.
   *
   * @param free gives that back; run once the lease is gone, so that nobody gets a lock on it any
   *     more, and before the folder, also where that cannot be removed
   * @throws IOException if the lease cannot be locked or removed, and nothing was given back; or if
   *     the folder could not be removed
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
