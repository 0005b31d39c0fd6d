package io.weft.collectives.host;

import io.weft.collectives.Operation.Signature;
import io.weft.memory.Memory;
import java.nio.ByteBuffer;

/**
 * The header of every message between two ranks. It detects a message of another operation, of
 * another length or out of order before any byte is taken for data.
 *
 * <pre>
 *   0 int code | 4 int root | 8 long count | 16 long sequence | 24 int phase | 28 int step
 *  32 long bytes
 * </pre>
 *
 * <p>Between hosts a CRC32C of the header follows it. After the message's bytes, if there are any,
 * follows a CRC32C of the header and the bytes.
 *
 * <p>Holds one header and its two checksums outside the heap. One thread at a time.
 */
final class FrameHeader {
  static final int BYTES = 40;

  /** The size of each checksum. */
  static final int SUM_BYTES = 4;

  private static final int WHOLE_SUM = BYTES + SUM_BYTES;

  private final ByteBuffer memory = ByteBuffer.allocateDirect(BYTES + 2 * SUM_BYTES);
  private final long address = Memory.addressOf(memory);

  /** The address of the header, which its checksum follows. */
  long address() {
    return address;
  }

  /** The address of the checksum of the whole message. */
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

  /** The checksum of the header; the caller sets it. */
  int sum() {
    return Memory.getInt(address + BYTES);
  }

  void sum(int ofHeader) {
    Memory.putInt(address + BYTES, ofHeader);
  }

  /** The checksum of header and bytes; the caller sets it. */
  int wholeSum() {
    return Memory.getInt(wholeSumAddress());
  }

  void wholeSum(int ofMessage) {
    Memory.putInt(wholeSumAddress(), ofMessage);
  }

  /** Whether the headers are equal, without the checksums. */
  boolean sameAs(FrameHeader other) {
    for (int at = 0; at < BYTES; at += 8) {
      if (Memory.getLong(address + at) != Memory.getLong(other.address + at)) {
        return false;
      }
    }
    return true;
  }
}
