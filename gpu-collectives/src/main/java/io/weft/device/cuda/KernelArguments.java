package io.weft.device.cuda;

import io.weft.memory.Memory;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Objects;

/**
 * The struct that a kernel takes, field by field in their order. Every field has to lie at a
 * multiple of its size, as a compiler of C would put it. One thread at a time.
 */
public final class KernelArguments {
  /** The most bytes that every driver takes. */
  public static final int MOST_BYTES = 4096;

  private final String kernel;
  private final ByteBuffer fields;

  KernelArguments(String kernel, int bytes) {
    if (bytes < 1 || bytes > MOST_BYTES) {
      throw new IllegalArgumentException(kernel + " cannot take " + bytes + " bytes of arguments");
    }
    this.kernel = kernel;
    this.fields = ByteBuffer.allocate(bytes).order(ByteOrder.nativeOrder());
  }

  /** The next field, of four bytes. */
  public KernelArguments putInt(int value) {
    require(Integer.BYTES);
    fields.putInt(value);
    return this;
  }

  /** The next field, of eight bytes: a number, or an address that was checked already. */
  public KernelArguments putLong(long value) {
    require(Long.BYTES);
    fields.putLong(value);
    return this;
  }

  /**
   * The next field: where a range of device memory starts.
   *
   * @throws IndexOutOfBoundsException when the range is not within the memory
   */
  public KernelArguments putAddress(CudaMemory memory, long offset, long bytes) {
    Objects.checkFromIndexSize(offset, bytes, memory.bytes());
    return putLong(memory.address() + offset);
  }

  /** Zeros up to the end: for arrays of which not all is used. */
  public KernelArguments fill() {
    fields.position(fields.limit());
    return this;
  }

  private void require(int bytes) {
    if (fields.position() % bytes != 0 || fields.remaining() < bytes) {
      throw new IllegalArgumentException(
          "a field of " + bytes + " bytes does not fit behind " + this);
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
