package io.weft.collectives.arithmetic;

import io.weft.collectives.DataType;
import io.weft.collectives.ReduceOp;
import io.weft.memory.Memory;

final class FloatReduction extends Reduction {
  private final ReduceOp op;
  private final float[] result = new float[TILE_BYTES / 4];
  private final float[] input = new float[TILE_BYTES / 4];

  FloatReduction(ReduceOp op) {
    super(DataType.FLOAT32);
    this.op = op;
  }

  @Override
  void load(long address, int n) {
    Memory.copyTo(address, result, Memory.FLOAT_ARRAY, (long) n * 4);
  }

  @Override
  void combine(long address, int n) {
    Memory.copyTo(address, input, Memory.FLOAT_ARRAY, (long) n * 4);
    switch (op) {
      case SUM, AVERAGE -> add(result, input, n);
      case PRODUCT -> multiply(result, input, n);
      case MIN -> min(result, input, n);
      case MAX -> max(result, input, n);
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
    Memory.copyFrom(result, Memory.FLOAT_ARRAY, address, (long) n * 4);
  }

  private static void add(float[] result, float[] input, int n) {
    for (int i = 0; i < n; i++) {
      result[i] = result[i] + input[i];
    }
  }

  private static void multiply(float[] result, float[] input, int n) {
    for (int i = 0; i < n; i++) {
      result[i] = result[i] * input[i];
    }
  }

  private static void min(float[] result, float[] input, int n) {
    for (int i = 0; i < n; i++) {
      result[i] = Math.min(result[i], input[i]);
    }
  }

  private static void max(float[] result, float[] input, int n) {
    for (int i = 0; i < n; i++) {
      result[i] = Math.max(result[i], input[i]);
    }
  }
}
