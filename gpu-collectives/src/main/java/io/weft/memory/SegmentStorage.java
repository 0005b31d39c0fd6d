package io.weft.memory;

import java.io.IOException;
import java.nio.file.Path;

/**
 * The operations that segment files need from the machine. Tests replace it to make a file system
 * fail.
 */
interface SegmentStorage {
  SegmentStorage SYSTEM =
      new SegmentStorage() {
        @Override
        public long usableBytes(Path folder) {
          return folder.toFile().getUsableSpace();
        }

        @Override
        public MappedSegment reserve(Path file, long bytes) throws IOException {
          return MappedSegment.reserve(file, bytes);
        }

        @Override
        public long nanoTime() {
          return System.nanoTime();
        }
      };

  /** Bytes that this process may still write in a folder. */
  long usableBytes(Path folder);

  MappedSegment reserve(Path file, long bytes) throws IOException;

  long nanoTime();
}
