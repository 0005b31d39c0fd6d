package io.weft.memory;

/**
 * An arena's counters at one moment, taken together.
 *
 * @param memory segments of kind {@link MemoryKind#SHARED_MEMORY}
 * @param disk segments of kind {@link MemoryKind#DISK}
 * @param privateMemory segments of kind {@link MemoryKind#PRIVATE}, of both parts
 * @param peakUsedBytes most bytes ever in use at once, all kinds together
 * @param allocations extents handed out so far
 * @param extents extents out now
 */
public record ArenaStatistics(
    Tier memory,
    Tier disk,
    Tier privateMemory,
    long peakUsedBytes,
    long allocations,
    long extents) {

  /**
   * One kind's share.
   *
   * @param reservedBytes bytes of the segments that exist now
   * @param usedBytes bytes of the extents that are out now, each rounded up to 64
   * @param freshBytes bytes of all segments made so far; stands still while memory is reused
   * @param segments segments that exist now
   */
  public record Tier(long reservedBytes, long usedBytes, long freshBytes, int segments) {
    Tier plus(Tier other) {
      return new Tier(
          reservedBytes + other.reservedBytes,
          usedBytes + other.usedBytes,
          freshBytes + other.freshBytes,
          segments + other.segments);
    }
  }

  public Tier of(MemoryKind kind) {
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

  public int segments() {
    return memory.segments + disk.segments + privateMemory.segments;
  }
}
