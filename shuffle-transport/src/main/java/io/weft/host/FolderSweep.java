package io.weft.host;

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
 * Removes what dead executors of this user left: their folders, the files that the links in them
 * lead to, and parents that are empty after that. A folder in which a living reader holds a lease
 * stays until it does not. Several processes may sweep at once. Nothing here throws: what cannot be
 * removed now is logged and left to the next sweep.
 */
final class FolderSweep {
  private static final Logger LOG = LoggerFactory.getLogger(FolderSweep.class);

  /** An unfinished folder this old belongs to a process that died while it started. */
  private static final Duration LONGEST_START = Duration.ofMinutes(10);

  private static final int LOOKS_AT_EXIT = 3;
  private static final long EXIT_PAUSE_NANOS = Duration.ofMillis(10).toNanos();

  private FolderSweep() {}

  /** Sweeps all applications of a user. */
  static void user(Path userFolder) {
    entries(userFolder).forEach(FolderSweep::application);
  }

  /** Sweeps one application. */
  static void application(Path applicationFolder) {
    entries(applicationFolder).forEach(FolderSweep::executor);
    removeIfEmpty(applicationFolder);
  }

  /** Sweeps one executor. */
  static void executor(Path folder) {
    boolean unused = sweep(folder, false);
  }

  /**
   * Sweeps executors as the last thing that this process does for them. What it could read itself
   * keeps nothing any more: its leases on what dead executors left end here. So of several
   * processes that end at once, the last one finds no lease of the others.
   *
   * @param executors their folders
   */
  static void atExit(Collection<Path> executors) {
    List<Path> left = List.copyOf(executors);
    for (int look = 1; !left.isEmpty() && look <= LOOKS_AT_EXIT; look++) {
      if (look > 1) {
        // Another process may have had a lock just to see whether its owner lives.
        LockSupport.parkNanos(EXIT_PAUSE_NANOS);
      }
      left = left.stream().filter(executor -> !sweep(executor, true)).toList();
    }
  }

  /** Returns whether nothing is left of it, so that there is no need to look again. */
  private static boolean sweep(Path executor, boolean atExit) {
    try {
      if (!isAbandoned(executor)) {
        return false;
      }
      if (atExit) {
        Lease.closeAll(executor);
      }
      return removeUnlessRead(executor);
    } catch (NoSuchFileException e) {
      LOG.debug("{} went while it was looked at: renamed or removed by another", executor);
    } catch (IOException e) {
      LOG.warn("The folder {} of a dead executor was not removed: {}", executor, e.toString());
    }
    return true;
  }

  /** Whether its owner is dead, which is for ever; so the lock is not kept. */
  private static boolean isAbandoned(Path folder) throws IOException {
    if (!Files.isDirectory(folder, LinkOption.NOFOLLOW_LINKS) || isStarting(folder)) {
      return false;
    }
    try {
      Optional<LockedFile> dead = LockedFile.share(folder.resolve(Names.ALIVE));
      if (dead.isPresent()) {
        dead.get().close();
      }
      return dead.isPresent();
    } catch (NoSuchFileException e) {
      // Somebody died, or is busy, between removing the lock and the folder.
      return true;
    }
  }

  private static boolean removeUnlessRead(Path folder) throws IOException {
    if (new LeaseBoard(folder).anyLiving()) {
      return false;
    }
    ExecutorFiles.remove(folder);
    LOG.info("Removed the folder {} of a dead executor", folder);
    return true;
  }

  private static boolean isStarting(Path folder) throws IOException {
    if (!folder.getFileName().toString().startsWith(Names.STARTING_PREFIX)) {
      return false;
    }
    Instant made = Files.getLastModifiedTime(folder).toInstant();
    return made.plus(LONGEST_START).isAfter(Instant.now());
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
}
