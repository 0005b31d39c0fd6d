package io.weft.collectives.host;

import io.weft.memory.Memory;
import java.nio.ByteBuffer;
import java.util.zip.CRC32C;

/**
 * Computes the CRC32C (Castagnoli) of a message piece by piece, while the bytes are in the
 * processor's cache. One thread at a time.
 */
final class MessageSum {
  private final CRC32C sum = new CRC32C();
  private final ByteBuffer view = ByteBuffer.allocateDirect(0);

  /** Starts again with a header; the message's bytes follow. */
  int startWith(Frame frame) {
    sum.reset();
    add(frame.address(), Frame.BYTES);
    return value();
  }

  /** Adds the next bytes. */
  void add(long address, int bytes) {
    Memory.aim(view, address, bytes);
    sum.update(view);
  }

  /** The checksum of all bytes so far. */
  int value() {
    return (int) sum.getValue();
  }
}
