package io.weft.training;

import io.weft.collectives.DataType;
import io.weft.collectives.arithmetic.BFloat16;
import io.weft.memory.Memory;

/**
 * A few KB of elements as float32, converted from their stored type. Loops over its array become
 * vector instructions, unlike loops over raw addresses. The array fits in the first-level cache, so
 * float32 arithmetic never needs a float32 copy of a whole tensor. Not thread-safe.
 */
final class FloatTile {
  /** The number of elements of a tile. */
  static final int SIZE = 2048;

  final float[] values = new float[SIZE];
  private final short[] halves = new short[SIZE];

  /** Reads n elements, at most {@link #SIZE}, from memory. */
  void load(DataType type, long address, int n) {
    if (type == DataType.FLOAT32) {
      Memory.copyTo(address, values, Memory.FLOAT_ARRAY, 4L * n);
      return;
    }
    Memory.copyTo(address, halves, Memory.SHORT_ARRAY, 2L * n);
    for (int i = 0; i < n; i++) {
      values[i] = BFloat16.toFloat(halves[i]);
    }
  }

  /** Writes the first n elements to memory, each rounded once. */
  void store(DataType type, long address, int n) {
    if (type == DataType.FLOAT32) {
      Memory.copyFrom(values, Memory.FLOAT_ARRAY, address, 4L * n);
      return;
    }
    for (int i = 0; i < n; i++) {
      halves[i] = BFloat16.fromFloat(values[i]);
    }
    Memory.copyFrom(halves, Memory.SHORT_ARRAY, address, 2L * n);
  }
}
