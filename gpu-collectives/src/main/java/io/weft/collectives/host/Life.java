package io.weft.collectives.host;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.channels.OverlappingFileLockException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/**
 * Tells whether the process of a rank is alive. The process holds a lock on a file, and the kernel
 * releases it however the process ends. The file may be deleted meanwhile. Thread-safe.
 */
interface Life extends AutoCloseable {
  /** For ranks in this process, which is always alive. */
  Life OWN =
      new Life() {
        @Override
        public boolean hasEnded() {
          return false;
        }

        @Override
        public void close() {
          // No resources to release.
        }
      };

  boolean hasEnded();

  @Override
  void close();

  /**
   * Opens the lock file of another process. It must not be one of this process: closing the file
   * would release this process's lock.
   *
   * @param lockFile still exists now
   */
  static Life ofOther(Path lockFile) throws IOException {
    FileChannel channel = FileChannel.open(lockFile, StandardOpenOption.READ);
    return new Life() {
      @Override
      public synchronized boolean hasEnded() {
        try (FileLock lock = channel.tryLock(0, Long.MAX_VALUE, true)) {
          return lock != null;
        } catch (OverlappingFileLockException e) {
          // Another rank of this process is checking right now; the next poll checks again.
          return false;
        } catch (IOException e) {
          throw new UncheckedIOException("cannot test the lock on " + lockFile, e);
        }
      }

      @Override
      public void close() {
        try {
          channel.close();
        } catch (IOException e) {
          throw new UncheckedIOException("cannot close " + lockFile, e);
        }
      }
    };
  }
}
