package io.weft.crosshost.buffer;

/**
 * A snapshot of the counters of transfer buffers.
 *
 * @param taken buffers handed out so far
 * @param allocated of these, buffers with newly allocated memory; the others were reused
 * @param out buffers in use now
 * @param idleBytes bytes that are kept for reuse
 */
public record BufferStatistics(long taken, long allocated, long out, long idleBytes) {
  /** The sums of both statistics. */
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
