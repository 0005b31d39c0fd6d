package io.weft.collectives.arithmetic;

import io.weft.collectives.DataType;
import io.weft.collectives.ReduceOp;
import io.weft.memory.Memory;

/**
 * Reduces the 16-bit floats: widens once per source, computes in float32, and rounds once at the
 * end.
 */
final class HalfReduction extends Reduction {
  private static final int TILE = TILE_BYTES / 2;

  private final boolean brain;
  private final ReduceOp op;
  private final float[] result = new float[TILE];
  private final short[] raw = new short[TILE];

  HalfReduction(DataType type, ReduceOp op) {
    super(type);
    this.brain = type == DataType.BFLOAT16;
    this.op = op;
  }

  @Override
  void load(long address, int n) {
    Memory.copyTo(address, raw, Memory.SHORT_ARRAY, 2L * n);
    for (int i = 0; i < n; i++) {
      result[i] = widen(raw[i]);
    }
  }

  @Override
  void combine(long address, int n) {
    Memory.copyTo(address, raw, Memory.SHORT_ARRAY, 2L * n);
    switch (op) {
      case SUM, AVERAGE -> add(n);
      case PRODUCT -> multiply(n);
      case MIN -> min(n);
      case MAX -> max(n);
    }
  }

  private void add(int n) {
    for (int i = 0; i < n; i++) {
      result[i] += widen(raw[i]);
    }
  }

  private void multiply(int n) {
    for (int i = 0; i < n; i++) {
      result[i] *= widen(raw[i]);
    }
  }

  private void min(int n) {
    for (int i = 0; i < n; i++) {
      result[i] = Math.min(result[i], widen(raw[i]));
    }
  }

  private void max(int n) {
    for (int i = 0; i < n; i++) {
      result[i] = Math.max(result[i], widen(raw[i]));
    }
  }

  @Override
  void divide(int n, int divisor) {
    for (int i = 0; i < n; i++) {
      result[i] /= divisor;
    }
  }

  @Override
  void store(long address, int n) {
    for (int i = 0; i < n; i++) {
      raw[i] = brain ? BFloat16.fromFloat(result[i]) : Float16.fromFloat(result[i]);
    }
    Memory.copyFrom(raw, Memory.SHORT_ARRAY, address, 2L * n);
  }

  private float widen(short bits) {
    return brain ? BFloat16.toFloat(bits) : Float16.toFloat(bits);
  }
}
