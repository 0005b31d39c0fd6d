package io.weft.collectives.host;

import io.weft.collectives.operation.Signature;
import io.weft.memory.Memory;
import java.nio.ByteBuffer;

/**
 * What precedes the bytes of every message between two ranks, so that a message of another
 * operation, another length or another place in the order is noticed and never taken for data.
 *
 * <pre>
 *   0 int code | 4 int root | 8 long count | 16 long sequence | 24 int phase | 28 int step
 *  32 long bytes
 * </pre>
 *
 * <p>Between hosts a CRC32C of the header follows it, and behind the message's bytes, where there
 * are any, comes one of the header and the bytes.
 *
 * <p>Holds one header and its two sums outside the heap. One thread at a time.
 */
final class Frame {
  static final int BYTES = 40;

  /** Of either sum. */
  static final int SUM_BYTES = 4;

  private static final int WHOLE_SUM = BYTES + SUM_BYTES;

  private final ByteBuffer memory = ByteBuffer.allocateDirect(BYTES + 2 * SUM_BYTES);
  private final long address = Memory.addressOf(memory);

  /** Where the header is, and its sum behind it. */
  long address() {
    return address;
  }

  /** Where the sum of the whole message is. */
  long wholeSumAddress() {
    return address + WHOLE_SUM;
  }

  void write(Signature signature, long sequence, int phase, int step, long bytes) {
    Memory.putInt(address, signature.code());
    Memory.putInt(address + 4, signature.root());
    Memory.putLong(address + 8, signature.count());
    Memory.putLong(address + 16, sequence);
    Memory.putInt(address + 24, phase);
    Memory.putInt(address + 28, step);
    Memory.putLong(address + 32, bytes);
  }

  Signature signature() {
    return new Signature(
        Memory.getInt(address), Memory.getInt(address + 4), Memory.getLong(address + 8));
  }

  long sequence() {
    return Memory.getLong(address + 16);
  }

  int phase() {
    return Memory.getInt(address + 24);
  }

  int step() {
    return Memory.getInt(address + 28);
  }

  long bytes() {
    return Memory.getLong(address + 32);
  }

  /** The header's sum; it is the caller's to set. */
  int sum() {
    return Memory.getInt(address + BYTES);
  }

  void sum(int ofHeader) {
    Memory.putInt(address + BYTES, ofHeader);
  }

  /** The sum of header and bytes; it is the caller's to set. */
  int wholeSum() {
    return Memory.getInt(wholeSumAddress());
  }

  void wholeSum(int ofMessage) {
    Memory.putInt(wholeSumAddress(), ofMessage);
  }

  /** Whether the headers are equal; sums do not count. */
  boolean sameAs(Frame other) {
    for (int at = 0; at < BYTES; at += 8) {
      if (Memory.getLong(address + at) != Memory.getLong(other.address + at)) {
        return false;
      }
    }
    return true;
  }
}
