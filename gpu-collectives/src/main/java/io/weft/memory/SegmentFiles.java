package io.weft.memory;

import java.io.IOException;
import java.nio.file.Path;

/** Creates and deletes the segments of one tier. Thread-safe; may block on I/O. */
interface SegmentFiles {
  /**
   * Creates the segment and its name in the arena's folder; a failed call leaves nothing behind.
   */
  MappedSegment create(Path name, long bytes) throws IOException;

  /**
   * Maps the file of another arena read-only, under a name of its own in this arena's folder; a
   * failed call leaves nothing behind.
   *
   * @param source the file's name in the other arena's folder, which stays
   */
  MappedSegment adopt(Path name, Path source) throws IOException;

  /** Removes the name and the file; mappings stay valid. */
  void delete(Path name, MappedSegment segment) throws IOException;

  /** Removes folders and links that remain after all segments are deleted. */
  void close() throws IOException;
}
