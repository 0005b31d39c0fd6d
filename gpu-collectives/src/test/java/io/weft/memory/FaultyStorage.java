package io.weft.memory;

import java.io.IOException;
import java.nio.file.Path;
import java.util.concurrent.atomic.AtomicInteger;

/** The real file system with configurable free space, failures, delays and time. */
final class FaultyStorage implements SegmentStorage {
  interface Reserve {
    MappedSegment reserve(Path file, long bytes) throws IOException;
  }

  final AtomicInteger reserves = new AtomicInteger();
  volatile Reserve reserve = MappedSegment::reserve;
  volatile long usableBytes = Long.MAX_VALUE;
  volatile long nanoTime;

  @Override
  public long usableBytes(Path folder) {
    return usableBytes;
  }

  @Override
  public MappedSegment reserve(Path file, long bytes) throws IOException {
    reserves.incrementAndGet();
    return reserve.reserve(file, bytes);
  }

  @Override
  public long nanoTime() {
    return nanoTime;
  }
}
