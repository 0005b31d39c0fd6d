package io.weft.collectives.local;

import io.weft.collectives.arithmetic.BFloat16;
import io.weft.collectives.arithmetic.Float16;
import io.weft.collectives.buffer.DataType;
import io.weft.collectives.buffer.ReduceOp;
import io.weft.collectives.buffer.TypedBuffer;
import io.weft.memory.Memory;

/** Copies and reduces one element at a time: slow, but easy to verify. */
final class Elements {
  private Elements() {}

  /** Copies one element between buffers of one type. */
  static void copy(TypedBuffer from, long fromIndex, TypedBuffer to, long toIndex) {
    int bytes = from.type().bytes();
    Memory.copy(from.address() + fromIndex * bytes, to.address() + toIndex * bytes, bytes);
  }

  /** Writes the reduction of element index of all sources as element toIndex. */
  static void reduce(TypedBuffer[] sources, long index, ReduceOp op, TypedBuffer to, long toIndex) {
    DataType type = to.type();
    long address = to.address() + toIndex * type.bytes();
    switch (type) {
      case INT8 -> Memory.putByte(address, (byte) integers(sources, index, op));
      case INT16 -> Memory.putShort(address, (short) integers(sources, index, op));
      case INT32 -> Memory.putInt(address, (int) integers(sources, index, op));
      case INT64 -> Memory.putLong(address, integers(sources, index, op));
      case FLOAT16 -> Memory.putShort(address, Float16.fromFloat(floats(sources, index, op)));
      case BFLOAT16 -> Memory.putShort(address, BFloat16.fromFloat(floats(sources, index, op)));
      case FLOAT32 -> Memory.putFloat(address, floats(sources, index, op));
      case FLOAT64 -> Memory.putDouble(address, doubles(sources, index, op));
    }
  }

  private static long integers(TypedBuffer[] sources, long index, ReduceOp op) {
    long result = integer(sources[0], index);
    for (int rank = 1; rank < sources.length; rank++) {
      long value = integer(sources[rank], index);
      result =
          switch (op) {
            case SUM, AVERAGE -> result + value;
            case PRODUCT -> result * value;
            case MIN -> Math.min(result, value);
            case MAX -> Math.max(result, value);
          };
    }
    return op == ReduceOp.AVERAGE ? wrapped(result, sources[0].type()) / sources.length : result;
  }

  private static long wrapped(long value, DataType type) {
    return switch (type) {
      case INT8 -> (byte) value;
      case INT16 -> (short) value;
      case INT32 -> (int) value;
      default -> value;
    };
  }

  private static long integer(TypedBuffer buffer, long index) {
    long address = buffer.address() + index * buffer.type().bytes();
    return switch (buffer.type()) {
      case INT8 -> Memory.getByte(address);
      case INT16 -> Memory.getShort(address);
      case INT32 -> Memory.getInt(address);
      default -> Memory.getLong(address);
    };
  }

  private static float floats(TypedBuffer[] sources, long index, ReduceOp op) {
    float result = real(sources[0], index);
    for (int rank = 1; rank < sources.length; rank++) {
      float value = real(sources[rank], index);
      result =
          switch (op) {
            case SUM, AVERAGE -> result + value;
            case PRODUCT -> result * value;
            case MIN -> Math.min(result, value);
            case MAX -> Math.max(result, value);
          };
    }
    return op == ReduceOp.AVERAGE ? result / sources.length : result;
  }

  private static float real(TypedBuffer buffer, long index) {
    long address = buffer.address() + index * buffer.type().bytes();
    return switch (buffer.type()) {
      case FLOAT16 -> Float16.toFloat(Memory.getShort(address));
      case BFLOAT16 -> BFloat16.toFloat(Memory.getShort(address));
      default -> Memory.getFloat(address);
    };
  }

  private static double doubles(TypedBuffer[] sources, long index, ReduceOp op) {
    double result = Memory.getDouble(sources[0].address() + index * 8);
    for (int rank = 1; rank < sources.length; rank++) {
      double value = Memory.getDouble(sources[rank].address() + index * 8);
      result =
          switch (op) {
            case SUM, AVERAGE -> result + value;
            case PRODUCT -> result * value;
            case MIN -> Math.min(result, value);
            case MAX -> Math.max(result, value);
          };
    }
    return op == ReduceOp.AVERAGE ? result / sources.length : result;
  }
}
