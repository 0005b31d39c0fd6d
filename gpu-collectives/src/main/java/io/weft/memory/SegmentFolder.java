package io.weft.memory;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.Optional;
import java.util.concurrent.TimeUnit;

/**
 * A folder for segment files. It refuses a file that would leave less than the margin in its file
 * system, or that its limit objects to. After a failure it refuses all files for a while, because
 * each attempt in a full file system costs the writing of a segment.
 *
 * <p>Thread-safe.
 */
final class SegmentFolder {
  private static final long QUIET_NANOS = TimeUnit.SECONDS.toNanos(5);

  private final Path path;
  private final long marginBytes;
  private final MemoryLimit limit;
  private final SegmentStorage storage;
  private volatile Failure lastFailure;

  private record Failure(String reason, long nanoTime) {}

  SegmentFolder(Path path, long marginBytes, MemoryLimit limit, SegmentStorage storage) {
    this.path = path;
    this.marginBytes = marginBytes;
    this.limit = limit;
    this.storage = storage;
  }

  Path path() {
    return path;
  }

  /** The steps that create a file of this folder. */
  interface Creation {
    MappedSegment run(SegmentStorage storage) throws IOException;
  }

  /** Creates a file of that many bytes, or throws the reason why not. */
  MappedSegment attempt(long bytes, Creation creation) throws IOException {
    requireQuietIsOver();
    requireRoom(bytes);
    try {
      return creation.run(storage);
    } catch (IOException e) {
      String reason = "a segment of " + Bytes.text(bytes) + " failed in " + path + ": " + e;
      // An attempt in a deleted folder costs nothing, and the folder may be created again.
      if (!(e instanceof NoSuchFileException)) {
        lastFailure = new Failure(reason, storage.nanoTime());
      }
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
    Optional<String> objection = limit.objection(bytes);
    if (objection.isPresent()) {
      throw new IOException(objection.get());
    }
  }
}
