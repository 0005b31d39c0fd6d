package io.weft.device.cuda;

import io.weft.memory.Memory;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * The struct of a kernel's arguments, written field by field in their order. Each field must be at
 * a multiple of its size, as in C. Used by one thread at a time.
 */
public final class KernelArguments {
  /** The most bytes that every driver accepts. */
  public static final int MAX_BYTES = 4096;

  private final String kernel;
  private final ByteBuffer fields;

  KernelArguments(String kernel, int bytes) {
    if (bytes < 1 || bytes > MAX_BYTES) {
      throw new IllegalArgumentException(kernel + " cannot take " + bytes + " bytes of arguments");
    }
    this.kernel = kernel;
    this.fields = ByteBuffer.allocate(bytes).order(ByteOrder.nativeOrder());
  }

  /** Appends a field of four bytes. */
  public KernelArguments putInt(int value) {
    require(Integer.BYTES);
    fields.putInt(value);
    return this;
  }

  /** Appends a field of eight bytes: a number, or an address that was checked before. */
  public KernelArguments putLong(long value) {
    require(Long.BYTES);
    fields.putLong(value);
    return this;
  }

  /** Fills the rest with zeros, for arrays that are not full. */
  public KernelArguments fill() {
    fields.position(fields.limit());
    return this;
  }

  private void require(int bytes) {
    if (fields.position() % bytes != 0 || fields.remaining() < bytes) {
      throw new IllegalArgumentException(
          "a field of " + bytes + " bytes does not fit after " + this);
    }
  }

  int left() {
    return fields.remaining();
  }

  int bytes() {
    return fields.capacity();
  }

  void copyTo(long address) {
    Memory.copyFrom(fields.array(), Memory.BYTE_ARRAY, address, fields.capacity());
  }

  @Override
  public String toString() {
    return fields.position() + " of " + fields.capacity() + " bytes for " + kernel;
  }
}
