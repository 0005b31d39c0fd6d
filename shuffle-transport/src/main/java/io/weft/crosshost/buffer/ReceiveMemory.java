package io.weft.crosshost.buffer;

import io.weft.collectives.buffer.TypedBuffer;
import java.io.IOException;
import java.util.Optional;

/**
 * Where arrays arrive, and are sent from: the memory of one device. Implementations are
 * thread-safe.
 */
public interface ReceiveMemory {
  /**
   * A buffer with undefined contents.
   *
   * @param bytes 1 or more
   * @throws IOException when there is no more; the message says of what
   */
  TransferBuffer take(long bytes) throws IOException;

  /**
   * Why an array cannot be sent from this device, in words: it lies elsewhere. Empty where it can,
   * and where nobody can tell.
   */
  default Optional<String> obstacle(TypedBuffer source) {
    return Optional.empty();
  }

  /** The counters as they are now. */
  BufferStatistics statistics();
}
