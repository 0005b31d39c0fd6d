package io.weft.memory;

import java.util.concurrent.atomic.AtomicBoolean;

/**
 * One kind's budget, free blocks and counters. Guarded by the arena's lock, except for the files
 * and the growth, which see to themselves.
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

  private final String budgetReached;

  private final AtomicBoolean failed = new AtomicBoolean();

  /** Claimed for segments that are being made. */
  private long pendingBytes;

  /** Why the last segment was not made; null while none was refused. */
  private String refusal;

  Tier(MemoryKind kind, long budgetBytes, SegmentFiles files) {
    this(kind, kind.toString(), budgetBytes, files);
  }

  /** Where a kind has more tiers than one, each has a name. */
  Tier(MemoryKind kind, String name, long budgetBytes, SegmentFiles files) {
    this.kind = kind;
    this.name = name;
    this.budgetBytes = budgetBytes;
    this.files = files;
    this.budgetReached = "its budget of " + Bytes.text(budgetBytes) + " is reached";
  }

  /** Sets bytes of the budget aside for a segment to be made; false when they are not there. */
  boolean claim(long bytes) {
    if (reservedBytes + pendingBytes + bytes > budgetBytes) {
      refusal = budgetReached;
      return false;
    }
    pendingBytes += bytes;
    return true;
  }

  /** How much has to go so that so many bytes fit; where the budget is not what is short, all. */
  long shortfall(long bytes) {
    long over = reservedBytes + pendingBytes + bytes - budgetBytes;
    return over > 0 ? over : bytes;
  }

  void unclaim(long bytes) {
    pendingBytes -= bytes;
  }

  /** Counts a segment that was made under a claim. */
  void added(long bytes) {
    pendingBytes -= bytes;
    reservedBytes += bytes;
    freshBytes += bytes;
    segments++;
  }

  void removed(long bytes) {
    reservedBytes -= bytes;
    segments--;
  }

  void refuse(String reason) {
    refusal = reason;
  }

  /** True once: the failure worth a line in the log. */
  boolean firstFailure() {
    return failed.compareAndSet(false, true);
  }

  String refusal() {
    return refusal;
  }

  ArenaStatistics.Tier statistics() {
    return new ArenaStatistics.Tier(reservedBytes, usedBytes, freshBytes, segments);
  }

  /** "shared memory: 62.0 MiB in use of 64.0 MiB reserved, budget 64.0 MiB (reason)". */
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
