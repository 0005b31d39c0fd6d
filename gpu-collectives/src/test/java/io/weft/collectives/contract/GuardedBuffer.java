package io.weft.collectives.contract;

import io.weft.collectives.DataType;
import io.weft.collectives.TypedBuffer;
import io.weft.memory.Memory;
import java.nio.ByteBuffer;

/** A buffer between two runs of known bytes, to detect writes outside it. */
public final class GuardedBuffer {
  private static final int GUARD = 64;
  private static final byte MARK = (byte) 0xa5;

  private final ByteBuffer memory;
  private final int start;
  private final TypedBuffer buffer;

  /**
   * @param misalignment bytes by which element 0 is off an 8-byte boundary
   */
  public GuardedBuffer(DataType type, long count, int misalignment) {
    int bytes = Math.toIntExact(count * type.bytes());
    this.memory = ByteBuffer.allocateDirect(2 * GUARD + 8 + bytes);
    this.start = GUARD + misalignment;
    for (int i = 0; i < memory.capacity(); i++) {
      memory.put(i, MARK);
    }
    this.buffer = TypedBuffer.wrap(memory.slice(start, bytes), type);
  }

  public TypedBuffer buffer() {
    return buffer;
  }

  /** Fails if a byte outside the buffer has changed. */
  public void check(String what) {
    long address = Memory.addressOf(memory);
    for (int i = 0; i < memory.capacity(); i++) {
      boolean inside = i >= start && i < start + buffer.bytes();
      if (!inside && Memory.getByte(address + i) != MARK) {
        throw new AssertionError(
            what + ": byte " + (i - start) + " outside the buffer was written");
      }
    }
  }
}
