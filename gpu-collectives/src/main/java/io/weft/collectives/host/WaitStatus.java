package io.weft.collectives.host;

import io.weft.collectives.Operation.Signature;
import io.weft.memory.Memory;
import java.util.Optional;

/**
 * The rank that a rank waits for, and in which operation, as published to others.
 *
 * <pre>
 *   0 int version (odd while it is written) | 4 int rank + 1, 0 for none | 8 long sequence
 *  16 int code | 20 int root | 24 long count
 * </pre>
 *
 * @param rank the first rank it waits for
 * @param sequence number of its current collective, or of the last one
 * @param signature its current operation
 */
record WaitStatus(int rank, long sequence, Signature signature) {
  static final int BYTES = 32;
  private static final int ATTEMPTS = 1000;

  void write(long address) {
    int version = Memory.getInt(address);
    Memory.putIntRelease(address, version + 1);
    Memory.putIntRelease(address + 4, rank + 1);
    Memory.putLongRelease(address + 8, sequence);
    Memory.putIntRelease(address + 16, signature.code());
    Memory.putIntRelease(address + 20, signature.root());
    Memory.putLongRelease(address + 24, signature.count());
    Memory.putIntRelease(address, version + 2);
  }

  static void clear(long address) {
    Memory.putIntRelease(address + 4, 0);
  }

  /** Empty when it waits for no rank, or when the status keeps changing. */
  static Optional<WaitStatus> read(long address) {
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
      int version = Memory.getIntAcquire(address);
      if ((version & 1) == 0) {
        int rank = Memory.getIntAcquire(address + 4);
        WaitStatus status = read(address, rank - 1);
        if (Memory.getIntAcquire(address) == version) {
          return rank > 0 ? Optional.of(status) : Optional.empty();
        }
      }
      Thread.onSpinWait();
    }
    return Optional.empty();
  }

  private static WaitStatus read(long address, int rank) {
    return new WaitStatus(
        rank,
        Memory.getLongAcquire(address + 8),
        new Signature(
            Memory.getIntAcquire(address + 16),
            Memory.getIntAcquire(address + 20),
            Memory.getLongAcquire(address + 24)));
  }
}
