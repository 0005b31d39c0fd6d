package io.weft.crosshost.buffer;

import java.io.IOException;

/** Where arrays arrive: the memory of one device. Implementations are thread-safe. */
public interface ReceiveMemory {
  /**
   * A buffer with undefined contents.
   *
   * @param bytes 1 or more
   * @throws IOException when there is no more; the message says of what
   */
  TransferBuffer take(long bytes) throws IOException;

  /** The counters as they are now. */
  BufferStatistics statistics();
}
