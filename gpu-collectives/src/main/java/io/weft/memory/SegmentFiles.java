package io.weft.memory;

import java.io.IOException;
import java.nio.file.Path;

/** Where one tier's segments come from. Thread-safe; may block on I/O. */
interface SegmentFiles {
  /** Makes the segment and its name in the arena's folder; leaves nothing behind when it fails. */
  MappedSegment create(Path name, long bytes) throws IOException;

  /** Removes the name and the file; what is mapped stays mapped. */
  void delete(Path name, MappedSegment segment) throws IOException;

  /** Removes what was made beside the segments, once they are deleted. */
  void close() throws IOException;
}
