package io.weft.memory;

/**
 * A consistent snapshot of an arena's counters.
 *
 * @param memory segments of kind {@link MemoryKind#SHARED_MEMORY}
 * @param disk segments of kind {@link MemoryKind#DISK}
 * @param privateMemory segments of kind {@link MemoryKind#PRIVATE}, of both parts
 * @param peakUsedBytes the most bytes of all kinds that were in use at once
 * @param allocations the number of allocations so far
 * @param extents the number of extents that are allocated now
 */
public record ArenaStatistics(
    TierStatistics memory,
    TierStatistics disk,
    TierStatistics privateMemory,
    long peakUsedBytes,
    long allocations,
    long extents) {

  /**
   * The counters of one kind of memory.
   *
   * @param reservedBytes bytes of the segments that exist now
   * @param usedBytes bytes of the extents that are allocated now, each rounded up to 64
   * @param freshBytes bytes of all segments created so far; constant while memory is reused
   * @param segments segments that exist now
   */
  public record TierStatistics(long reservedBytes, long usedBytes, long freshBytes, int segments) {
    TierStatistics plus(TierStatistics other) {
      return new TierStatistics(
          reservedBytes + other.reservedBytes,
          usedBytes + other.usedBytes,
          freshBytes + other.freshBytes,
          segments + other.segments);
    }
  }

  TierStatistics of(MemoryKind kind) {
    return switch (kind) {
      case SHARED_MEMORY -> memory;
      case DISK -> disk;
      case PRIVATE -> privateMemory;
    };
  }

  public long reservedBytes() {
    return memory.reservedBytes + disk.reservedBytes + privateMemory.reservedBytes;
  }

  public long usedBytes() {
    return memory.usedBytes + disk.usedBytes + privateMemory.usedBytes;
  }

  public long freshBytes() {
    return memory.freshBytes + disk.freshBytes + privateMemory.freshBytes;
  }

  int segments() {
    return memory.segments + disk.segments + privateMemory.segments;
  }
}
