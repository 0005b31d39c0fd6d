package io.weft.transfer;

import io.weft.wire.BlocksOpened;
import java.nio.ByteBuffer;

/**
 * Lays the chunks of an answer out in memory, each at a multiple of 64, and puts the bytes of the
 * stream there as they come. Guarded by its transfer.
 */
final class ReceiveCursor {
  private static final long ALIGNMENT = 64;

  private final BlocksOpened answer;
  private final long[] offset;
  private final long end;
  private int chunk;
  private long filled;

  ReceiveCursor(BlocksOpened answer) {
    this.answer = answer;
    this.offset = new long[answer.chunks()];
    long at = 0;
    for (int i = 0; i < offset.length; i++) {
      offset[i] = at;
      at += (answer.length(i) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    }
    this.end = at;
  }

  /** Where a chunk starts. */
  long offset(int index) {
    return offset[index];
  }

  /** Bytes that the chunks take up, rounded up to 64. */
  long end() {
    return end;
  }

  /** How many chunks are whole. */
  int arrived() {
    return chunk;
  }

  /** Takes bytes out of the data as long as a chunk wants some. */
  void receive(ByteBuffer data, ByteBuffer target) {
    while (data.hasRemaining() && chunk < offset.length) {
      int count = (int) Math.min(data.remaining(), answer.length(chunk) - filled);
      target.put((int) (offset[chunk] + filled), data, data.position(), count);
      data.position(data.position() + count);
      filled += count;
      if (filled == answer.length(chunk)) {
        chunk++;
        filled = 0;
      }
    }
  }
}
