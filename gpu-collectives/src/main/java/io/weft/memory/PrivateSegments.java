package io.weft.memory;

import java.io.IOException;
import java.nio.file.Path;

/** Segments without files, in memory of this process alone. Stateless. */
final class PrivateSegments implements SegmentFiles {
  @Override
  public MappedSegment create(Path name, long bytes) throws IOException {
    return MappedSegment.ofPrivateMemory(name, bytes);
  }

  @Override
  public void delete(Path name, MappedSegment segment) {
    // There is no file.
  }

  @Override
  public void close() {
    // Only segments were created.
  }
}
