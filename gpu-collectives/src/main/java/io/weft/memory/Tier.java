package io.weft.memory;

import java.util.concurrent.atomic.AtomicBoolean;

/**
 * The budget, free blocks and counters of one kind of memory. Guarded by the arena's lock, except
 * for the files and the growth, which are thread-safe.
 */
final class Tier {
  final MemoryKind kind;
  final String name;
  final long budgetBytes;
  final SegmentFiles files;
  final SingleFlight growth = new SingleFlight();
  final FreeBlocks free = new FreeBlocks();

  int segments;
  long reservedBytes;
  long usedBytes;
  long freshBytes;

  /** The part of {@link #reservedBytes} that does not count in the budget. */
  long exemptBytes;

  /** The part of {@link #reservedBytes} that other arenas had. */
  long adoptedBytes;

  private final String budgetReached;

  private final AtomicBoolean failed = new AtomicBoolean();

  /** The bytes of segments that are being created. */
  private long pendingBytes;

  /** The reason why the last segment was not created; null while none was refused. */
  private String refusal;

  Tier(MemoryKind kind, long budgetBytes, SegmentFiles files) {
    this(kind, kind.toString(), budgetBytes, files);
  }

  /** Creates a tier with a name of its own, for a kind with several tiers. */
  Tier(MemoryKind kind, String name, long budgetBytes, SegmentFiles files) {
    this.kind = kind;
    this.name = name;
    this.budgetBytes = budgetBytes;
    this.files = files;
    this.budgetReached = "its budget of " + Bytes.text(budgetBytes) + " is reached";
  }

  /** Reserves budget for a new segment; false when there is not enough. */
  boolean claim(long bytes) {
    if (reservedBytes - exemptBytes + pendingBytes + bytes > budgetBytes) {
      refusal = budgetReached;
      return false;
    }
    pendingBytes += bytes;
    return true;
  }

  /**
   * The bytes to delete so that {@code bytes} more fit; all of them if the budget is not the limit.
   */
  long shortfall(long bytes) {
    long over = reservedBytes - exemptBytes + pendingBytes + bytes - budgetBytes;
    return over > 0 ? over : bytes;
  }

  void unclaim(long bytes) {
    pendingBytes -= bytes;
  }

  /** Counts a segment that was created under a claim. */
  void added(long bytes) {
    pendingBytes -= bytes;
    reservedBytes += bytes;
    freshBytes += bytes;
    segments++;
  }

  /** Whether a segment of another arena can be added: at most a whole budget of such segments. */
  boolean mayAdopt(long bytes) {
    return adoptedBytes + bytes <= budgetBytes;
  }

  /** Counts a segment of another arena. With the tier's own segments it may exceed the budget. */
  void adopted(Segment segment) {
    segment.adopted = true;
    adoptedBytes += segment.bytes;
    reservedBytes += segment.bytes;
    exemptBytes += segment.exempt ? segment.bytes : 0;
    segments++;
  }

  void removed(Segment segment) {
    reservedBytes -= segment.bytes;
    exemptBytes -= segment.exempt ? segment.bytes : 0;
    adoptedBytes -= segment.adopted ? segment.bytes : 0;
    segments--;
  }

  void refuse(String reason) {
    refusal = reason;
  }

  /** True once, so that only the first failure is logged. */
  boolean firstFailure() {
    return failed.compareAndSet(false, true);
  }

  String refusal() {
    return refusal;
  }

  ArenaStatistics.Tier statistics() {
    return new ArenaStatistics.Tier(reservedBytes, usedBytes, freshBytes, segments);
  }

  /**
   * A text such as "shared memory: 62.0 MiB in use of 64.0 MiB reserved, budget 64.0 MiB (reason)".
   */
  String describe() {
    return name
        + ": "
        + Bytes.text(usedBytes)
        + " in use of "
        + Bytes.text(reservedBytes)
        + " reserved, budget "
        + Bytes.text(budgetBytes)
        + (refusal == null ? "" : " (" + refusal + ")");
  }
}
