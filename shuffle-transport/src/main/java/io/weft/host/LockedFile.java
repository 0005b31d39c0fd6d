package io.weft.host;

import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.channels.OverlappingFileLockException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A file with an exclusive lock on it: the sign that the process which made it lives. The system
 * drops the lock when the process ends, however it ends, and the lock means the same in every
 * container that shares the folder, where process numbers do not.
 *
 * <p>The lock is the process's, not the channel's: closing <em>any</em> channel on the file, also
 * one that was opened only to try the lock, drops it. So the files that this process has locked or
 * is trying are remembered, and never opened a second time. They are remembered in two places: as
 * system properties, because the class may be loaded more than once in a process, and here, because
 * others may replace the system properties.
 */
final class LockedFile implements AutoCloseable {
  private static final String MARK = "io.weft.host.locked:";

  private static final Logger LOG = LoggerFactory.getLogger(LockedFile.class);
  private static final Set<String> MARKS = ConcurrentHashMap.newKeySet();

  private final String mark;
  private final FileChannel channel;

  private LockedFile(String mark, FileChannel channel) {
    this.mark = mark;
    this.channel = channel;
  }

  /**
   * Makes a file of mode 0600 and locks it. Until it is locked it looks like that of a dead
   * process, so it is made where nobody looks, and the caller moves it.
   *
   * @param madeAs where it is made
   * @param movedTo where it will be found, by its real path
   */
  static LockedFile create(Path madeAs, Path movedTo) throws IOException {
    Files.createFile(madeAs, OwnedFolders.FILE);
    return lock(madeAs, MARK + movedTo, false)
        .orElseThrow(() -> new IOException(madeAs + " was locked by another process"));
  }

  /**
   * Takes the lock of a process that has died; empty when the process lives, or when another thread
   * is just trying the same.
   *
   * @throws java.nio.file.NoSuchFileException when the file is gone
   */
  static Optional<LockedFile> seize(Path file) throws IOException {
    return lock(file, mark(file), false);
  }

  /**
   * As {@link #seize}, but together with others who look just as this process does: none of them
   * takes another for the owner.
   *
   * @throws java.nio.file.NoSuchFileException when the file is gone
   */
  static Optional<LockedFile> share(Path file) throws IOException {
    return lock(file, mark(file), true);
  }

  private static String mark(Path file) throws IOException {
    return MARK + file.getParent().toRealPath().resolve(file.getFileName());
  }

  private static Optional<LockedFile> lock(Path file, String mark, boolean shared)
      throws IOException {
    if (!remember(mark)) {
      return Optional.empty();
    }
    FileChannel channel = null;
    try {
      channel = lock(file, shared);
    } finally {
      if (channel == null) {
        forget(mark);
      }
    }
    return Optional.ofNullable(channel).map(locked -> new LockedFile(mark, locked));
  }

  private static FileChannel lock(Path file, boolean shared) throws IOException {
    // A shared lock needs a channel that reads, an exclusive one a channel that writes.
    FileChannel channel =
        FileChannel.open(file, shared ? StandardOpenOption.READ : StandardOpenOption.WRITE);
    FileLock lock = null;
    try {
      lock = channel.tryLock(0, Long.MAX_VALUE, shared);
    } catch (OverlappingFileLockException e) {
      // Held by this process without our memory of it: alive, whoever it is.
      LOG.debug("{} is locked by this process", file, e);
    } finally {
      if (lock == null) {
        channel.close();
      }
    }
    return lock == null ? null : channel;
  }

  /** Lets go of the lock. */
  @Override
  public void close() throws IOException {
    try {
      channel.close();
    } finally {
      forget(mark);
    }
  }

  private static boolean remember(String mark) {
    if (!MARKS.add(mark)) {
      return false;
    }
    if (System.getProperties().putIfAbsent(mark, "") != null) {
      MARKS.remove(mark);
      return false;
    }
    return true;
  }

  private static void forget(String mark) {
    System.clearProperty(mark);
    MARKS.remove(mark);
  }
}
