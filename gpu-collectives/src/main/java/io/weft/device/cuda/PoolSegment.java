package io.weft.device.cuda;

import io.weft.memory.OffsetLedger;

/** A segment of a {@link CudaMemoryPool} and its taken runs. Guarded by the pool's monitor. */
final class PoolSegment {
  private final long address;
  private final long bytes;
  private final OffsetLedger ledger;
  private long takenBytes;
  private int loans;
  private boolean wantedBack;

  PoolSegment(long address, long bytes) {
    this.address = address;
    this.bytes = bytes;
    this.ledger = new OffsetLedger(bytes);
  }

  long address() {
    return address;
  }

  long bytes() {
    return bytes;
  }

  /** Returns an offset, or {@link OffsetLedger#NONE}. */
  long take(long length) {
    long offset = ledger.take(length);
    if (offset != OffsetLedger.NONE) {
      takenBytes += length;
    }
    return offset;
  }

  void give(long offset, long length) {
    ledger.give(offset, length);
    takenBytes -= length;
  }

  /** Whether no memory is taken from it. */
  boolean isUnused() {
    return takenBytes == 0;
  }

  /** Whether another process may have mapped it. */
  boolean isLent() {
    return loans > 0;
  }

  void lend() {
    loans++;
  }

  void endLoan() {
    loans--;
    wantedBack &= loans > 0;
  }

  void wantBack() {
    wantedBack = true;
  }

  boolean isWantedBack() {
    return wantedBack;
  }
}
