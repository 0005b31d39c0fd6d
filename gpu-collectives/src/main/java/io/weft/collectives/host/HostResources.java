package io.weft.collectives.host;

import io.weft.collectives.bootstrap.RankFolder;
import io.weft.memory.MappedSegment;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.Deque;

/** The resources of a communicator, closed in reverse order of their creation. Thread-safe. */
final class HostResources implements AutoCloseable {
  private final Deque<AutoCloseable> open = new ArrayDeque<>();

  /** Adds a resource to close. */
  synchronized <T extends AutoCloseable> T add(T resource) {
    open.push(resource);
    return resource;
  }

  /** Reserves a segment in the rank's folder. */
  MappedSegment reserve(RankFolder folder, String name, long bytes) throws IOException {
    return add(MappedSegment.reserve(folder.path().resolve(name), bytes));
  }

  /** Maps a segment of another rank on this host. */
  MappedSegment attach(Path file) throws IOException {
    return add(MappedSegment.attach(file));
  }

  /** Closes all resources, even when closing one fails; throws the first failure. */
  @Override
  public synchronized void close() {
    RuntimeException failure = null;
    while (!open.isEmpty()) {
      try {
        open.pop().close();
      } catch (Exception e) {
        if (failure == null) {
          failure = new IllegalStateException("closing a communicator: " + e.getMessage(), e);
        } else {
          failure.addSuppressed(e);
        }
      }
    }
    if (failure != null) {
      throw failure;
    }
  }
}
