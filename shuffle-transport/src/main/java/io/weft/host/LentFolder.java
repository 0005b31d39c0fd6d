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
   */
  public boolean removeUnlessHeld() throws IOException {
    try {
      Optional<LockedFile> free = LockedFile.seize(lease);
      if (free.isEmpty()) {
        return false;
      }
      LockedFile lock = free.get();
      try (lock) {
        remove();
      }
    } catch (NoSuchFileException e) {
      remove();
    }
    return true;
  }

  private void remove() throws IOException {
    ExecutorFiles.removeTree(path);
    Files.deleteIfExists(lease);
  }
}
