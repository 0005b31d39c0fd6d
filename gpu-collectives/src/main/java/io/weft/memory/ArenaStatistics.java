package io.weft.memory;

/**
 * An arena's counters at one moment, taken together.
 *
 * @param memory segments of kind {@link MemoryKind#SHARED_MEMORY}
 * @param disk segments of kind {@link MemoryKind#DISK}
 * @param peakUsedBytes most bytes ever in use at once, both kinds together
 * @param allocations extents handed out so far
 * @param extents extents out now
 */
public record ArenaStatistics(
    Tier memory, Tier disk, long peakUsedBytes, long allocations, long extents) {

  /**
   * One kind's share.
   *
   * @param reservedBytes bytes of the files that exist now
   * @param usedBytes bytes of the extents that are out now, each rounded up to 64
   * @param freshBytes bytes filled with zeros so far to make segments; stands still while memory is
   *     reused
   * @param segments segments that exist now
   */
  public record Tier(long reservedBytes, long usedBytes, long freshBytes, int segments) {}

  public Tier of(MemoryKind kind) {
    return kind == MemoryKind.SHARED_MEMORY ? memory : disk;
  }

  public long reservedBytes() {
    return memory.reservedBytes + disk.reservedBytes;
  }

  public long usedBytes() {
    return memory.usedBytes + disk.usedBytes;
  }

  public long freshBytes() {
    return memory.freshBytes + disk.freshBytes;
  }

  public int segments() {
    return memory.segments + disk.segments;
  }
}
