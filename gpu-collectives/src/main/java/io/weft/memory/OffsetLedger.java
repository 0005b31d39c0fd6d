package io.weft.memory;

import java.util.Map;
import java.util.TreeMap;

/**
 * The free runs of a segment: first fit by offset, with neighbours joined. Ranks that take and free
 * the same lengths in the same order get the same offsets.
 *
 * <p>Not thread-safe.
 */
public final class OffsetLedger {
  /** Two cache lines, which the processor fetches together. */
  public static final long ALIGNMENT = 128;

  /** The result of {@link #take} when no run is long enough. */
  public static final long NONE = -1;

  private final TreeMap<Long, Long> free = new TreeMap<>();

  /** Starts with all bytes free. */
  public OffsetLedger(long bytes) {
    free.put(0L, bytes);
  }

  /** Rounds a length up to a multiple of the alignment. */
  public static long aligned(long bytes) {
    return (bytes + ALIGNMENT - 1) & -ALIGNMENT;
  }

  /**
   * Takes a run.
   *
   * @param bytes a multiple of the alignment
   * @return its offset, or NONE
   */
  public long take(long bytes) {
    long offset = firstFit(bytes);
    if (offset != NONE) {
      long left = free.remove(offset) - bytes;
      if (left > 0) {
        free.put(offset + bytes, left);
      }
    }
    return offset;
  }

  private long firstFit(long bytes) {
    for (Map.Entry<Long, Long> run : free.entrySet()) {
      if (run.getValue() >= bytes) {
        return run.getKey();
      }
    }
    return NONE;
  }

  /** Frees a run. */
  public void give(long offset, long bytes) {
    long start = offset;
    long length = bytes;
    Map.Entry<Long, Long> before = free.floorEntry(offset);
    if (before != null && before.getKey() + before.getValue() == offset) {
      start = before.getKey();
      length += before.getValue();
    }
    Long after = free.remove(offset + bytes);
    if (after != null) {
      length += after;
    }
    free.put(start, length);
  }

  /** The number of free bytes. */
  public long freeBytes() {
    return free.values().stream().mapToLong(Long::longValue).sum();
  }
}
