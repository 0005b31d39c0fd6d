package io.weft.tensor.codec;

import io.weft.collectives.DataType;
import io.weft.memory.Memory;
import io.weft.tensor.TensorType;

/**
 * The header before the body of an encoded tensor. Numbers are little-endian.
 *
 * <pre>
 *   0                4       5       6       7       8                12               16
 *  +----------------+-------+-------+-------+-------+----------------+----------------+
 *  | magic, version | codec | dtype | rank  | 0     | scale exponent | 0              |
 *  +----------------+-------+-------+-------+-------+----------------+----------------+
 *  | size of dimension 0 (int64)    | size of dimension 1 ...                         |
 *  +---------------------------------------------------------------------------------+
 *  | body                                                                            |
 *  +---------------------------------------------------------------------------------+
 * </pre>
 *
 * @param kind the codec of the body
 * @param type the type of the decoded tensor
 * @param scaleExponent k, if the body contains elements multiplied by 2^k; 0 if it is not scaled
 */
public record TensorHeader(CodecKind kind, TensorType type, int scaleExponent) {
  /** "WFT" and the version of the format. */
  static final int MAGIC = 'W' | 'F' << 8 | 'T' << 16 | 1 << 24;

  /**
   * The difference between 15, the exponent of E5M2's largest value, and -149, that of the least
   * float32.
   */
  static final int MAX_EXPONENT = 164;

  private static final int CODEC = 4;
  private static final int DTYPE = 5;
  private static final int RANK = 6;
  private static final int ZERO = 7;
  private static final int SCALE = 8;
  private static final int ZEROS = 12;
  private static final int SHAPE = 16;

  /** The length of the header in bytes. */
  public int bytes() {
    return SHAPE + Long.BYTES * type.rank();
  }

  /** Writes {@link #bytes} bytes. */
  void write(long address) {
    Memory.putInt(address, MAGIC);
    Memory.putByte(address + CODEC, (byte) kind.code());
    Memory.putByte(address + DTYPE, (byte) type.dtype().code());
    Memory.putByte(address + RANK, (byte) type.rank());
    Memory.putByte(address + ZERO, (byte) 0);
    Memory.putInt(address + SCALE, scaleExponent);
    Memory.putInt(address + ZEROS, 0);
    for (int i = 0; i < type.rank(); i++) {
      Memory.putLong(address + SHAPE + (long) Long.BYTES * i, type.dimension(i));
    }
  }

  /**
   * Reads a header.
   *
   * @param available the available bytes, at least 0
   * @throws CorruptTensorException when they do not start with a header
   */
  static TensorHeader read(long address, long available) {
    check(available >= SHAPE, available + " bytes are not a header");
    check(Memory.getInt(address) == MAGIC, "it is of another format or version");
    int rank = Memory.getByte(address + RANK) & 0xff;
    check(rank <= TensorType.MAX_DIMENSIONS, "it has " + rank + " dimensions");
    check(available >= SHAPE + (long) Long.BYTES * rank, "its header is truncated");
    check(
        Memory.getByte(address + ZERO) == 0 && Memory.getInt(address + ZEROS) == 0,
        "its header has unknown bits");
    CodecKind kind = kind(Memory.getByte(address + CODEC) & 0xff);
    TensorType type = type(dtype(Memory.getByte(address + DTYPE) & 0xff), address, rank);
    check(kind.codec().encodes(type.dtype()), kind + " does not encode " + type.dtype());
    int exponent = Memory.getInt(address + SCALE);
    boolean scaled = kind == CodecKind.FLOAT8_E4M3 || kind == CodecKind.FLOAT8_E5M2;
    int most = scaled ? MAX_EXPONENT : 0;
    check(exponent >= -most && exponent <= most, "its scale is 2^" + exponent);
    return new TensorHeader(kind, type, exponent);
  }

  private static CodecKind kind(int code) {
    for (CodecKind kind : CodecKind.values()) {
      if (kind.code() == code) {
        return kind;
      }
    }
    throw new CorruptTensorException("Not an encoded tensor: no codec has the number " + code);
  }

  private static DataType dtype(int code) {
    for (DataType dtype : DataType.values()) {
      if (dtype.code() == code) {
        return dtype;
      }
    }
    throw new CorruptTensorException("Not an encoded tensor: no data type has the number " + code);
  }

  private static TensorType type(DataType dtype, long address, int rank) {
    long[] shape = new long[rank];
    for (int i = 0; i < rank; i++) {
      shape[i] = Memory.getLong(address + SHAPE + (long) Long.BYTES * i);
    }
    try {
      return TensorType.of(dtype, shape);
    } catch (IllegalArgumentException e) {
      throw new CorruptTensorException("Not an encoded tensor: " + e.getMessage(), e);
    }
  }

  /** Throws an error with the type of the tensor unless the condition holds. */
  void checkBody(boolean holds, String otherwise) {
    if (!holds) {
      throw new CorruptTensorException(
          "The body of a tensor " + type + " encoded as " + kind + " cannot be read: " + otherwise);
    }
  }

  private static void check(boolean holds, String otherwise) {
    if (!holds) {
      throw new CorruptTensorException("Not an encoded tensor: " + otherwise);
    }
  }
}
