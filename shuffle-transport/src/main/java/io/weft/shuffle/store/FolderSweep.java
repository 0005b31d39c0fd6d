package io.weft.shuffle.store;

import com.google.errorprone.annotations.CanIgnoreReturnValue;
import io.weft.shuffle.store.Lease.FolderLeases;
import io.weft.shuffle.store.PrivateFolders.FolderNames;
import java.io.IOException;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryNotEmptyException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.NotDirectoryException;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.locks.LockSupport;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Removes the files of dead executors of this user: their folders, the targets of links in them,
 * and empty parent folders. A folder stays while a live reader holds a lease in it. Several
 * processes may sweep at once. No method throws: failures are logged and left to the next sweep.
 */
final class FolderSweep {
  private static final Logger LOG = LoggerFactory.getLogger(FolderSweep.class);

  /** An unfinished folder of this age belongs to a process that died at its start. */
  private static final Duration LONGEST_START = Duration.ofMinutes(10);

  private static final int ATTEMPTS_AT_EXIT = 3;
  private static final long EXIT_PAUSE_NANOS = Duration.ofMillis(10).toNanos();

  private FolderSweep() {}

  /**
   * Sweeps all applications of a user. Returns the folders that were removed.
   *
   * @param spared an application that is not swept
   */
  @CanIgnoreReturnValue
  static List<Leftover> user(Path userFolder, Optional<Path> spared) {
    List<Leftover> removed = new ArrayList<>();
    for (Path application : entries(userFolder)) {
      if (spared.filter(application::equals).isPresent()) {
        continue;
      }
      entries(application).forEach(executor -> sweep(executor, false, false, removed));
      removeIfEmpty(application);
    }
    return removed;
  }

  /** Sweeps one application. */
  static void application(Path applicationFolder) {
    entries(applicationFolder).forEach(FolderSweep::executor);
    removeIfEmpty(applicationFolder);
  }

  /** Sweeps one executor. */
  static void executor(Path folder) {
    sweep(folder, false, false, new ArrayList<>());
  }

  /** Sweeps one executor of an application that ends, so that no later one adopts its folder. */
  static void atEnd(Path folder) {
    sweep(folder, false, true, new ArrayList<>());
  }

  /** Removes the unfinished folders of an application that ends, of any age. */
  static void unfinished(Path applicationFolder) {
    for (Path folder : entries(applicationFolder)) {
      try {
        if (isUnfinished(folder) && Files.isDirectory(folder, LinkOption.NOFOLLOW_LINKS)) {
          ExecutorFiles.remove(folder);
          LOG.info("Removed {} of an executor that ended at its start", folder);
        }
      } catch (IOException e) {
        LOG.warn("The unfinished folder {} was not removed: {}", folder, e.toString());
      }
    }
  }

  /**
   * Sweeps executors when this process ends. First closes this process's leases on dead executors.
   * So if several processes end at once, the last one finds no lease of the others.
   *
   * @param executors their folders
   * @param atEnd whether the application ends, so that no later executor adopts a folder
   */
  static void atExit(Collection<Path> executors, boolean atEnd) {
    List<Path> left = List.copyOf(executors);
    for (int attempt = 1; !left.isEmpty() && attempt <= ATTEMPTS_AT_EXIT; attempt++) {
      if (attempt > 1) {
        // Another process may have held the lock only to check whether the owner is alive.
        LockSupport.parkNanos(EXIT_PAUSE_NANOS);
      }
      left = left.stream().filter(each -> !sweep(each, true, atEnd, new ArrayList<>())).toList();
    }
  }

  /** Removes a folder if it may be. Returns whether no further attempt is needed. */
  @CanIgnoreReturnValue
  private static boolean sweep(
      Path executor, boolean atExit, boolean atEnd, List<Leftover> removed) {
    try {
      if (!isAbandoned(executor) || mayBeAdopted(executor, !atEnd)) {
        return false;
      }
      if (atExit) {
        Lease.closeAll(executor);
      }
      return removeUnlessRead(executor, removed);
    } catch (NoSuchFileException e) {
      LOG.debug("{} was renamed or removed by another process during the sweep", executor);
    } catch (IOException e) {
      LOG.warn("The folder {} of a dead executor was not removed: {}", executor, e.toString());
    }
    return true;
  }

  /** Whether the owner is dead. A dead owner stays dead, so the lock is released at once. */
  private static boolean isAbandoned(Path folder) throws IOException {
    if (!Files.isDirectory(folder, LinkOption.NOFOLLOW_LINKS) || isStarting(folder)) {
      return false;
    }
    try {
      Optional<LockedFile> dead = LockedFile.share(folder.resolve(FolderNames.ALIVE));
      if (dead.isPresent()) {
        dead.get().close();
      }
      return dead.isPresent();
    } catch (NoSuchFileException e) {
      // Another process died, or is active, between removing the lock and the folder.
      return true;
    }
  }

  /**
   * Whether an executor of the same application may still adopt what a dead one left: a living one,
   * or a later one within the time for which it is kept.
   */
  private static boolean mayBeAdopted(Path executor, boolean keeps) throws IOException {
    Path adoptable = executor.resolve(FolderNames.ADOPTABLE);
    if (!Files.exists(adoptable)) {
      return false;
    }
    if (keeps && isKept(adoptable)) {
      return true;
    }
    for (Path other : entries(executor.getParent())) {
      if (!other.equals(executor) && Files.isDirectory(other) && isAlive(other)) {
        return true;
      }
    }
    return false;
  }

  private static boolean isKept(Path adoptable) throws IOException {
    String millis = Files.readString(adoptable);
    if (!millis.matches("\\d{1,15}")) {
      return false;
    }
    Instant changed = Files.getLastModifiedTime(adoptable).toInstant();
    return changed.plusMillis(Long.parseLong(millis)).isAfter(Instant.now());
  }

  private static boolean isAlive(Path executor) throws IOException {
    try {
      return !isStarting(executor) && !isAbandoned(executor);
    } catch (NoSuchFileException e) {
      return false; // It was removed meanwhile.
    }
  }

  private static boolean removeUnlessRead(Path folder, List<Leftover> removed) throws IOException {
    if (new FolderLeases(folder).anyLiving()) {
      return false;
    }
    Leftover leftover = new Leftover(folder, ExecutorFiles.bytes(folder));
    ExecutorFiles.remove(folder);
    removed.add(leftover);
    LOG.info("Removed {} of a dead executor", leftover);
    return true;
  }

  private static boolean isStarting(Path folder) throws IOException {
    if (!isUnfinished(folder)) {
      return false;
    }
    Instant made = Files.getLastModifiedTime(folder).toInstant();
    return made.plus(LONGEST_START).isAfter(Instant.now());
  }

  private static boolean isUnfinished(Path folder) {
    return folder.getFileName().toString().startsWith(FolderNames.STARTING_PREFIX);
  }

  static List<Path> entries(Path folder) {
    List<Path> entries = new ArrayList<>();
    try (DirectoryStream<Path> stream = Files.newDirectoryStream(folder)) {
      stream.forEach(entries::add);
    } catch (NoSuchFileException | NotDirectoryException e) {
      return List.of();
    } catch (IOException | DirectoryIteratorException e) {
      LOG.warn("{} cannot be swept: {}", folder, e.toString());
    }
    return entries;
  }

  static void removeIfEmpty(Path folder) {
    try {
      Files.deleteIfExists(folder);
    } catch (DirectoryNotEmptyException e) {
      LOG.debug("{} is still in use", folder);
    } catch (IOException e) {
      LOG.warn("The empty folder {} was not removed: {}", folder, e.toString());
    }
  }

  /** Removes an executor's folder with all files that belong to it. */
  static final class ExecutorFiles {
    /** The name prefix of link targets that belong to Weft. Other targets are not removed. */
    private static final String OURS = "weft-";

    private static final int ATTEMPTS = 10;

    private ExecutorFiles() {}

    /**
     * Removes a folder. The file {@code adoptable} goes first, because an incomplete folder cannot
     * be adopted. The file {@code alive} goes last, so that the next sweep can finish an
     * interrupted removal.
     */
    static void remove(Path folder) throws IOException {
      for (int attempt = 1; ; attempt++) {
        try {
          removeOnce(folder);
          return;
        } catch (DirectoryNotEmptyException e) {
          // A reader has just created a lease.
          if (attempt == ATTEMPTS) {
            throw e;
          }
        }
      }
    }

    /** The bytes of the files of a folder and of those that its links lead to. */
    static long bytes(Path folder) {
      return FolderSweep.entries(folder).stream().mapToLong(ExecutorFiles::bytesOf).sum();
    }

    private static long bytesOf(Path entry) {
      try {
        if (!Files.isSymbolicLink(entry)) {
          return treeBytes(entry);
        }
        Path target = Files.readSymbolicLink(entry);
        return isOurs(target) ? treeBytes(target) : 0;
      } catch (IOException e) {
        LOG.debug("{} was removed meanwhile, or its target does not exist", entry, e);
        return 0;
      }
    }

    /** The bytes of a file or of a folder tree. Does not follow links. */
    private static long treeBytes(Path path) throws IOException {
      long sum = 0;
      if (Files.isDirectory(path, LinkOption.NOFOLLOW_LINKS)) {
        for (Path entry : FolderSweep.entries(path)) {
          sum += treeBytes(entry);
        }
      } else if (Files.isRegularFile(path, LinkOption.NOFOLLOW_LINKS)) {
        sum = Files.size(path);
      }
      return sum;
    }

    private static void removeOnce(Path folder) throws IOException {
      Files.deleteIfExists(folder.resolve(FolderNames.ADOPTABLE));
      for (Path entry : FolderSweep.entries(folder)) {
        if (Files.isSymbolicLink(entry)) {
          removeTarget(entry);
        }
        if (Files.isDirectory(entry, LinkOption.NOFOLLOW_LINKS)) {
          removeTree(entry);
        } else if (!entry.endsWith(FolderNames.ALIVE)) {
          Files.deleteIfExists(entry);
        }
      }
      Files.deleteIfExists(folder.resolve(FolderNames.ALIVE));
      Files.deleteIfExists(folder);
    }

    /** Removes a folder tree. Does not follow links. */
    static void removeTree(Path folder) throws IOException {
      for (Path entry : FolderSweep.entries(folder)) {
        if (Files.isDirectory(entry, LinkOption.NOFOLLOW_LINKS)) {
          removeTree(entry);
        } else {
          Files.deleteIfExists(entry);
        }
      }
      Files.deleteIfExists(folder);
    }

    private static void removeTarget(Path link) throws IOException {
      Path target;
      try {
        target = Files.readSymbolicLink(link);
      } catch (NoSuchFileException e) {
        return;
      }
      if (isOurs(target) && Files.isDirectory(target, LinkOption.NOFOLLOW_LINKS)) {
        removeTree(target);
        return;
      }
      Path parent = target.getParent();
      if (!isOurs(target) || parent == null || !isOurs(parent)) {
        return;
      }
      if (Files.isRegularFile(target, LinkOption.NOFOLLOW_LINKS)) {
        Files.deleteIfExists(target);
      }
      FolderSweep.removeIfEmpty(parent);
    }

    private static boolean isOurs(Path path) {
      return path.isAbsolute() && path.getFileName().toString().startsWith(OURS);
    }
  }
}
