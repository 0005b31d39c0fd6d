package io.weft.memory;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;

/**
 * A folder that segment files are made in. It refuses what would leave its file system less than
 * the margin, and after a failure is left alone for a while: a file system that fills up under our
 * feet costs a segment's worth of writing each time.
 *
 * <p>Thread-safe.
 */
final class SegmentFolder {
  private static final long QUIET_NANOS = TimeUnit.SECONDS.toNanos(5);

  private final Path path;
  private final long marginBytes;
  private final SegmentStorage storage;
  private volatile Failure lastFailure;

  private record Failure(String reason, long nanoTime) {}

  SegmentFolder(Path path, long marginBytes, SegmentStorage storage) {
    this.path = path;
    this.marginBytes = marginBytes;
    this.storage = storage;
  }

  Path path() {
    return path;
  }

  /** The steps that make a file of this folder. */
  interface Creation {
    MappedSegment run(SegmentStorage storage) throws IOException;
  }

  /** Makes a file of so many bytes, or says why not. */
  MappedSegment attempt(long bytes, Creation creation) throws IOException {
    requireQuietIsOver();
    requireRoom(bytes);
    try {
      return creation.run(storage);
    } catch (IOException e) {
      String reason = "a segment of " + Bytes.text(bytes) + " failed in " + path + ": " + e;
      lastFailure = new Failure(reason, storage.nanoTime());
      throw new IOException(reason, e);
    }
  }

  private void requireQuietIsOver() throws IOException {
    Failure failure = lastFailure;
    if (failure != null && storage.nanoTime() - failure.nanoTime < QUIET_NANOS) {
      throw new IOException(failure.reason);
    }
  }

  private void requireRoom(long bytes) throws IOException {
    if (!Files.isDirectory(path)) {
      throw new IOException(path + " does not exist");
    }
    long usable = storage.usableBytes(path);
    if (usable - marginBytes < bytes) {
      throw new IOException(
          path
              + " has "
              + Bytes.text(usable)
              + " left, too little for a segment of "
              + Bytes.text(bytes)
              + " and a margin of "
              + Bytes.text(marginBytes));
    }
  }
}
