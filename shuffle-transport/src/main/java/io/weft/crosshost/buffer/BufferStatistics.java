package io.weft.crosshost.buffer;

/**
 * The counters of transfer buffers at one moment.
 *
 * @param taken buffers handed out so far
 * @param allocated of these, those for which memory was allocated; the others were used before
 * @param out buffers that are out now
 * @param idleBytes bytes that are kept for the next
 */
public record BufferStatistics(long taken, long allocated, long out, long idleBytes) {
  /** Of two memories together. */
  public BufferStatistics plus(BufferStatistics other) {
    return new BufferStatistics(
        taken + other.taken,
        allocated + other.allocated,
        out + other.out,
        idleBytes + other.idleBytes);
  }

  /** Buffers that were handed out again without an allocation. */
  public long reused() {
    return taken - allocated;
  }
}
