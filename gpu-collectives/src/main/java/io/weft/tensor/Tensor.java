package io.weft.tensor;

import io.weft.collectives.DataType;
import io.weft.collectives.TypedBuffer;
import io.weft.memory.Memory;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.EnumMap;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * Elements of one type in host memory, with a shape: C order, no gaps, in the byte order of the
 * machine.
 *
 * <p>A tensor that owns its memory frees it at {@link #close}. An allocated tensor that is never
 * closed is freed by the collector. Views (of a buffer, of rows) own nothing: closing them does
 * nothing, and they end with their tensor. After that, {@link #buffer} and methods based on it
 * throw. A buffer or an address that was taken earlier must not be used any more.
 *
 * <p>Many threads may read one tensor. Equality is by identity.
 */
public final class Tensor implements AutoCloseable {
  private static final Map<DataType, Tensor> EMPTY = empties();

  private final TensorType type;
  private final TypedBuffer buffer;
  private final Lifetime lifetime;
  private final boolean owner;

  private Tensor(TensorType type, TypedBuffer buffer, Lifetime lifetime, boolean owner) {
    if (buffer.type() != type.dtype() || buffer.count() != type.elements()) {
      throw new IllegalArgumentException(
          "a tensor " + type + " cannot be created from " + buffer.count() + " " + buffer.type());
    }
    this.type = type;
    this.buffer = buffer;
    this.lifetime = lifetime;
    this.owner = owner;
  }

  private static Map<DataType, Tensor> empties() {
    Map<DataType, Tensor> made = new EnumMap<>(DataType.class);
    for (DataType dtype : DataType.values()) {
      made.put(dtype, of(TypedBuffer.empty(dtype), 0));
    }
    return made;
  }

  /**
   * A view of a buffer, whose owner keeps the memory; closing the view does nothing.
   *
   * @throws IllegalArgumentException when the shape does not have as many elements as the buffer
   */
  public static Tensor of(TypedBuffer buffer, long... shape) {
    return new Tensor(TensorType.of(buffer.type(), shape), buffer, null, false);
  }

  /** As {@link #of(TypedBuffer, long...)}, with an existing type. */
  public static Tensor of(TensorType type, TypedBuffer buffer) {
    return new Tensor(type, buffer, null, false);
  }

  /**
   * A tensor that owns the given memory. If it is never closed, the memory is never released.
   *
   * @param release run once, by the first {@link #close}
   * @throws IllegalArgumentException when the buffer does not match the type
   */
  public static Tensor owned(TensorType type, TypedBuffer buffer, AutoCloseable release) {
    return new Tensor(type, buffer, new Lifetime(Objects.requireNonNull(release)), true);
  }

  /**
   * A tensor of zeros outside the heap, freed by {@link #close} or else by the collector. A tensor
   * without elements uses no memory.
   *
   * @throws OutOfMemoryError when the JVM's limit for direct memory is reached
   */
  public static Tensor allocate(TensorType type) {
    if (type.elements() == 0) {
      return new Tensor(type, TypedBuffer.empty(type.dtype()), new Lifetime(() -> {}), true);
    }
    HostBlock block = HostBlock.allocate(type.bytes());
    TypedBuffer buffer = TypedBuffer.of(block, 0, type.dtype(), type.elements());
    return owned(type, buffer, block);
  }

  /** The tensor of shape [0]: one shared object for each element type, never closed. */
  public static Tensor empty(DataType dtype) {
    return EMPTY.get(dtype);
  }

  /** Element type and shape; also available after close. */
  public TensorType type() {
    return type;
  }

  /**
   * The elements. The buffer keeps allocated memory reachable, but does not keep the tensor open.
   *
   * @throws IllegalStateException after close
   */
  public TypedBuffer buffer() {
    if (lifetime != null && lifetime.closed()) {
      throw new IllegalStateException("the tensor " + type + " has been closed");
    }
    return buffer;
  }

  /**
   * The address of element 0; any value if there are no elements. Valid while the tensor is open
   * and reachable.
   *
   * @throws IllegalStateException after close
   */
  public long address() {
    return buffer().address();
  }

  /**
   * The bytes as a direct buffer in native order, from position 0 to its limit, without a copy. The
   * buffer keeps allocated memory reachable, but does not keep the tensor open.
   *
   * @throws IllegalStateException after close, or when there are more than 2 GiB - 1 bytes
   */
  public ByteBuffer byteBuffer() {
    TypedBuffer open = buffer();
    if (type.bytes() > Integer.MAX_VALUE) {
      throw new IllegalStateException(
          "the "
              + type.bytes()
              + " bytes of "
              + type
              + " do not fit into a ByteBuffer: use rows of it");
    }
    return Memory.view(open.owner(), open.address(), (int) type.bytes())
        .order(ByteOrder.nativeOrder());
  }

  /**
   * A view of one row: the elements of one index of the outermost dimension, without that
   * dimension.
   *
   * @throws IndexOutOfBoundsException when there is no such row
   * @throws IllegalStateException after close, or when the tensor has rank 0
   */
  public Tensor row(long i) {
    TensorType row = type.row();
    Objects.checkIndex(i, type.dimension(0));
    TypedBuffer slice = buffer().slice(i * row.elements(), row.elements());
    return new Tensor(row, slice, lifetime, false);
  }

  /**
   * A view of consecutive rows.
   *
   * @throws IndexOutOfBoundsException when they are not all within the tensor
   * @throws IllegalStateException after close, or when the tensor has rank 0
   */
  public Tensor rows(long first, long n) {
    TensorType row = type.row();
    Objects.checkFromIndexSize(first, n, type.dimension(0));
    TypedBuffer slice = buffer().slice(first * row.elements(), n * row.elements());
    return new Tensor(row.withRows(n), slice, lifetime, false);
  }

  /**
   * Frees the memory at the first call, if this tensor owns it. The caller must ensure that no
   * thread uses the memory any more.
   */
  @Override
  public void close() {
    if (owner) {
      lifetime.close(type);
    }
  }

  /** The type and the address of the elements. */
  @Override
  public String toString() {
    return type + " at 0x" + Long.toHexString(buffer.address());
  }

  /**
   * The state of a tensor's memory, which the tensor shares with its views: whether it is open, and
   * how it is freed.
   */
  static final class Lifetime {
    private final AutoCloseable release;
    private final AtomicBoolean closed = new AtomicBoolean();

    /**
     * @param release run once, by the first close
     */
    Lifetime(AutoCloseable release) {
      this.release = release;
    }

    boolean closed() {
      return closed.get();
    }

    /**
     * @param type the type for error messages
     */
    void close(TensorType type) {
      if (!closed.compareAndSet(false, true)) {
        return;
      }
      try {
        release.close();
      } catch (RuntimeException e) {
        throw e;
      } catch (Exception e) {
        throw new IllegalStateException("releasing a tensor " + type + " failed", e);
      }
    }
  }
}
