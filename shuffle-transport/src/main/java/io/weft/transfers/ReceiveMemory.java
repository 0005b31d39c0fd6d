package io.weft.transfers;

import io.weft.collectives.TypedBuffer;
import java.io.IOException;
import java.util.Optional;

/**
 * The memory of one device, which arrays are received in and sent from. Implementations are
 * thread-safe.
 */
public interface ReceiveMemory {
  /**
   * Allocates a buffer with undefined contents.
   *
   * @param bytes 1 or more
   * @throws IOException if memory is short; the message says which memory
   */
  TransferBuffer take(long bytes) throws IOException;

  /**
   * Why an array cannot be sent from this device, for example because it is in other memory. Empty
   * if it can, or if this is unknown.
   */
  default Optional<String> obstacle(TypedBuffer source) {
    return Optional.empty();
  }

  /** Frees memory that other executors have released meanwhile. Called about once a second. */
  default void reclaim() {}

  /** A snapshot of the counters. */
  BufferStatistics statistics();

  /**
   * A snapshot of the counters of transfer buffers.
   *
   * @param taken buffers handed out so far
   * @param allocated of these, buffers with newly allocated memory; the others were reused
   * @param out buffers in use now
   * @param idleBytes bytes that are kept for reuse
   * @param freshBytes bytes of GPU memory allocated so far
   */
  public record BufferStatistics(
      long taken, long allocated, long out, long idleBytes, long freshBytes) {
    /** Of memory that was never used. */
    public static final BufferStatistics NONE = new BufferStatistics(0, 0, 0, 0, 0);

    /** The sums of both statistics. */
    public BufferStatistics plus(BufferStatistics other) {
      return new BufferStatistics(
          taken + other.taken,
          allocated + other.allocated,
          out + other.out,
          idleBytes + other.idleBytes,
          freshBytes + other.freshBytes);
    }

    /** Buffers that were handed out again without an allocation. */
    public long reused() {
      return taken - allocated;
    }
  }
}
