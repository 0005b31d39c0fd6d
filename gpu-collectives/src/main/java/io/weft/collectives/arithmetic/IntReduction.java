package io.weft.collectives.arithmetic;

import io.weft.collectives.DataType;
import io.weft.collectives.ReduceOp;
import io.weft.memory.Memory;

final class IntReduction extends Reduction {
  private final ReduceOp op;
  private final int[] result = new int[TILE_BYTES / 4];
  private final int[] input = new int[TILE_BYTES / 4];

  IntReduction(ReduceOp op) {
    super(DataType.INT32);
    this.op = op;
  }

  @Override
  void load(long address, int n) {
    Memory.copyTo(address, result, Memory.INT_ARRAY, (long) n * 4);
  }

  @Override
  void combine(long address, int n) {
    Memory.copyTo(address, input, Memory.INT_ARRAY, (long) n * 4);
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
    Memory.copyFrom(result, Memory.INT_ARRAY, address, (long) n * 4);
  }

  private static void add(int[] result, int[] input, int n) {
    for (int i = 0; i < n; i++) {
      result[i] = result[i] + input[i];
    }
  }

  private static void multiply(int[] result, int[] input, int n) {
    for (int i = 0; i < n; i++) {
      result[i] = result[i] * input[i];
    }
  }

  private static void min(int[] result, int[] input, int n) {
    for (int i = 0; i < n; i++) {
      result[i] = Math.min(result[i], input[i]);
    }
  }

  private static void max(int[] result, int[] input, int n) {
    for (int i = 0; i < n; i++) {
      result[i] = Math.max(result[i], input[i]);
    }
  }
}
