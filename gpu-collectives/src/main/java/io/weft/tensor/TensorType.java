package io.weft.tensor;

import io.weft.collectives.DataType;
import java.io.Serializable;
import java.util.Arrays;
import java.util.Objects;

/**
 * The element type and shape of a tensor. Elements are in C order (the last dimension varies
 * fastest) without gaps. A tensor of rank 0 has one element.
 *
 * <p>Immutable. Recent types are cached, so that many small tensors of one type share it. Equality
 * is by value.
 */
public final class TensorType implements Serializable {
  /** The most dimensions. */
  public static final int MAX_DIMENSIONS = 32;

  private static final long serialVersionUID = 1;
  private static final int CACHED = 1024;

  /** Slots are written without a lock; each value is immutable, so any write is valid. */
  private static final TensorType[] CACHE = new TensorType[CACHED];

  private final DataType dtype;
  private final long[] shape;
  private final long elements;

  private TensorType(DataType dtype, long[] shape) {
    this.dtype = dtype;
    this.shape = shape;
    this.elements = elements(dtype, shape);
  }

  /**
   * Returns the type with this element type and shape.
   *
   * @param shape sizes, each zero or more, at most {@value #MAX_DIMENSIONS}; none for one element
   * @throws IllegalArgumentException when a size is negative, there are too many, or the bytes of
   *     all elements do not fit into a long
   */
  public static TensorType of(DataType dtype, long... shape) {
    int slot = hash(dtype, shape) & (CACHED - 1);
    TensorType cached = CACHE[slot];
    if (cached != null && cached.is(dtype, shape)) {
      return cached;
    }
    TensorType made = new TensorType(dtype, shape.clone());
    CACHE[slot] = made;
    return made;
  }

  private static long elements(DataType dtype, long[] shape) {
    Objects.requireNonNull(dtype, "dtype");
    if (shape.length > MAX_DIMENSIONS) {
      throw new IllegalArgumentException(
          "a tensor of " + shape.length + " dimensions; the maximum is " + MAX_DIMENSIONS);
    }
    boolean none = false;
    for (long size : shape) {
      if (size < 0) {
        throw new IllegalArgumentException("a negative size in the shape " + text(dtype, shape));
      }
      none |= size == 0;
    }
    return none ? 0 : product(dtype, shape);
  }

  private static long product(DataType dtype, long[] shape) {
    long most = Long.MAX_VALUE / dtype.bytes();
    long elements = 1;
    for (long size : shape) {
      if (size > most / elements) {
        throw new IllegalArgumentException(
            "the bytes of " + text(dtype, shape) + " do not fit into a long");
      }
      elements *= size;
    }
    return elements;
  }

  /** The type of the elements. */
  public DataType dtype() {
    return dtype;
  }

  /** The sizes, outermost first; a copy. */
  public long[] shape() {
    return shape.clone();
  }

  /** The number of dimensions. */
  public int rank() {
    return shape.length;
  }

  /** The size of one dimension; 0 is the outermost. */
  public long dimension(int i) {
    return shape[Objects.checkIndex(i, shape.length)];
  }

  /** The elements of a whole tensor. */
  public long elements() {
    return elements;
  }

  /** The bytes of a whole tensor. */
  public long bytes() {
    return elements * dtype.bytes();
  }

  /** The type of n consecutive tensors of this type: n becomes the outermost dimension. */
  public TensorType withRows(long n) {
    long[] rows = new long[shape.length + 1];
    rows[0] = n;
    System.arraycopy(shape, 0, rows, 1, shape.length);
    return of(dtype, rows);
  }

  /**
   * The type without its outermost dimension.
   *
   * @throws IllegalStateException when it has none
   */
  public TensorType row() {
    if (shape.length == 0) {
      throw new IllegalStateException(this + " has no rows");
    }
    return of(dtype, Arrays.copyOfRange(shape, 1, shape.length));
  }

  private boolean is(DataType otherType, long[] otherShape) {
    return dtype == otherType && Arrays.equals(shape, otherShape);
  }

  private static int hash(DataType dtype, long[] shape) {
    // The hash code of an enum differs between processes, so its code is used.
    int hash = 31 * Arrays.hashCode(shape) + dtype.code();
    return hash ^ (hash >>> 16);
  }

  private Object readResolve() {
    return of(dtype, shape);
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof TensorType type && is(type.dtype, type.shape);
  }

  @Override
  public int hashCode() {
    return hash(dtype, shape);
  }

  /** A text such as {@code float32[3, 1024]}. */
  @Override
  public String toString() {
    return text(dtype, shape);
  }

  private static String text(DataType dtype, long[] shape) {
    return dtype + Arrays.toString(shape);
  }
}
