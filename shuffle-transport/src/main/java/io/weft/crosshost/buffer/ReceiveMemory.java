package io.weft.crosshost.buffer;

import io.weft.collectives.buffer.TypedBuffer;
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

  /** A snapshot of the counters. */
  BufferStatistics statistics();
}
