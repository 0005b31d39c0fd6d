package io.weft.collectives;

import io.weft.memory.Memory;
import java.nio.ByteBuffer;
import java.util.Objects;

/**
 * A range of elements of one type outside the Java heap, which collectives read and write. It needs
 * no alignment.
 *
 * <p>A view: it keeps its owner reachable, but the owner frees the memory. Immutable; the address
 * is that at the time of creation.
 */
public final class TypedBuffer {
  private final BufferOwner owner;
  private final long offset;
  private final long address;
  private final DataType type;
  private final long count;

  private TypedBuffer(BufferOwner owner, long offset, DataType type, long count) {
    this(owner, offset, owner.address() + offset, type, count);
  }

  private TypedBuffer(BufferOwner owner, long offset, long address, DataType type, long count) {
    this.owner = owner;
    this.offset = offset;
    this.address = address;
    this.type = type;
    this.count = count;
  }

  /**
   * A view of memory that has an owner.
   *
   * @param offset first byte within the owner's memory
   * @param count elements, zero or more
   */
  public static TypedBuffer of(BufferOwner owner, long offset, DataType type, long count) {
    Objects.checkFromIndexSize(
        offset, Math.multiplyExact(count, (long) type.bytes()), owner.bytes());
    return new TypedBuffer(owner, offset, type, count);
  }

  /**
   * A view of a direct buffer between its position and its limit.
   *
   * @throws IllegalArgumentException when it is on the heap, or not a whole number of elements
   */
  public static TypedBuffer wrap(ByteBuffer direct, DataType type) {
    if (direct.remaining() % type.bytes() != 0) {
      throw new IllegalArgumentException(
          direct.remaining() + " bytes are not a whole number of " + type + " elements");
    }
    DirectMemory owner = new DirectMemory(direct, Memory.addressOf(direct));
    return of(owner, direct.position(), type, direct.remaining() / type.bytes());
  }

  /**
   * A view of memory that is known to live long enough; it keeps no owner reachable.
   *
   * @param address of the first element; any value when count is zero
   */
  public static TypedBuffer at(long address, DataType type, long count) {
    return of(new Unowned(address, Math.multiplyExact(count, (long) type.bytes())), 0, type, count);
  }

  /** A buffer of no elements, for ranks that take part without data. */
  public static TypedBuffer empty(DataType type) {
    return at(0, type, 0);
  }

  private record DirectMemory(ByteBuffer buffer, long address) implements BufferOwner {
    @Override
    public long bytes() {
      return buffer.capacity();
    }
  }

  private record Unowned(long address, long bytes) implements BufferOwner {}

  /** Address of element 0. */
  public long address() {
    return address;
  }

  /** The number of elements. */
  public long count() {
    return count;
  }

  /** The number of bytes of all elements. */
  public long bytes() {
    return count * type.bytes();
  }

  public DataType type() {
    return type;
  }

  public BufferOwner owner() {
    return owner;
  }

  /** Bytes between the start of the owner's memory and element 0. */
  public long offset() {
    return offset;
  }

  /**
   * Elements [first, first + length) of this buffer. It does not ask the owner: an operation slices
   * buffers whose owner may be closed already but is kept until the operation ends.
   *
   * @throws IndexOutOfBoundsException when they are not all within it
   */
  public TypedBuffer slice(long first, long length) {
    Objects.checkFromIndexSize(first, length, count);
    long skipped = first * type.bytes();
    return new TypedBuffer(owner, offset + skipped, address + skipped, type, length);
  }

  /** The same bytes as elements of another type. */
  public TypedBuffer as(DataType other) {
    if (bytes() % other.bytes() != 0) {
      throw new IllegalArgumentException(
          bytes() + " bytes are not a whole number of " + other + " elements");
    }
    return new TypedBuffer(owner, offset, address, other, bytes() / other.bytes());
  }

  /** The same view at the current address of the owner's memory. */
  public TypedBuffer current() {
    return new TypedBuffer(owner, offset, type, count);
  }

  /** Whether the two views share at least one byte. */
  public boolean overlaps(TypedBuffer other) {
    return count > 0
        && other.count > 0
        && address < other.address + other.bytes()
        && other.address < address + bytes();
  }

  /** Whether the two views have the same address, count and type. */
  public boolean sameAs(TypedBuffer other) {
    return address == other.address && count == other.count && type == other.type;
  }

  @Override
  public String toString() {
    return count + " " + type + " at 0x" + Long.toHexString(address);
  }
}
