package io.weft.shuffle.store;

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
 * A file with an exclusive lock, which shows that the process that created it is alive. The
 * operating system releases the lock when the process ends. Containers that share the folder see
 * the same lock, but not the same process ids.
 *
 * <p>The lock belongs to the process, not to the channel: closing <em>any</em> channel on the file
 * releases it, even one that was opened only to try the lock. So this class records the files that
 * this process has locked or tries to lock, and never opens them a second time. The record is in
 * two places: in system properties, because the class may be loaded more than once in a process,
 * and in this class, because other code may replace the system properties.
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
   * Creates a file of mode 0600 and locks it. Before it is locked it looks like the file of a dead
   * process. So it is created under a name that sweeps ignore, and the caller moves it.
   *
   * @param madeAs path at creation
   * @param movedTo real path after the move
   */
  static LockedFile create(Path madeAs, Path movedTo) throws IOException {
    Files.createFile(madeAs, PrivateFolders.FILE);
    return lock(madeAs, MARK + movedTo, false)
        .orElseThrow(() -> new IOException(madeAs + " was locked by another process"));
  }

  /**
   * Takes the lock of a dead process. Returns empty if the process is alive, or if another thread
   * of this process tries the same lock.
   *
   * @throws java.nio.file.NoSuchFileException if the file does not exist
   */
  static Optional<LockedFile> seize(Path file) throws IOException {
    return lock(file, mark(file), false);
  }

  /**
   * As {@link #seize}, but with a shared lock. So several processes can check at once, and none
   * takes another one for the owner.
   *
   * @throws java.nio.file.NoSuchFileException if the file does not exist
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
      // Locked by this process, but not recorded here. The owner is alive.
      LOG.debug("{} is locked by this process", file, e);
    } finally {
      if (lock == null) {
        channel.close();
      }
    }
    return lock == null ? null : channel;
  }

  /** Releases the lock. */
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
