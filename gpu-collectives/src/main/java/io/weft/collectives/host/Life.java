package io.weft.collectives.host;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.channels.OverlappingFileLockException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/**
 * Whether the process of a rank lives: it holds a lock on a file for as long, and the kernel lets
 * go of it however the process ends. The file may be deleted meanwhile. Thread-safe.
 */
interface Life extends AutoCloseable {
  /** Of ranks in this process, which can say nothing about itself. */
  Life OWN =
      new Life() {
        @Override
        public boolean hasEnded() {
          return false;
        }

        @Override
        public void close() {
          // Nothing was opened.
        }
      };

  boolean hasEnded();

  @Override
  void close();

  /**
   * The life of another process. Never of this one: closing the file would let go of the own lock.
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
          // Another rank of this process is asking right now; the next look asks again.
          return false;
        } catch (IOException e) {
          throw new UncheckedIOException("cannot ask for the lock on " + lockFile, e);
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
