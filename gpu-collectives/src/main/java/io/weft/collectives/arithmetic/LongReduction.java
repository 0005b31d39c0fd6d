package io.weft.collectives.arithmetic;

import io.weft.collectives.DataType;
import io.weft.collectives.ReduceOp;
import io.weft.memory.Memory;

final class LongReduction extends Reduction {
  private final ReduceOp op;
  private final long[] result = new long[TILE_BYTES / 8];
  private final long[] input = new long[TILE_BYTES / 8];

  LongReduction(ReduceOp op) {
    super(DataType.INT64);
    this.op = op;
  }

  @Override
  void load(long address, int n) {
    Memory.copyTo(address, result, Memory.LONG_ARRAY, (long) n * 8);
  }

  @Override
  void combine(long address, int n) {
    Memory.copyTo(address, input, Memory.LONG_ARRAY, (long) n * 8);
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
    Memory.copyFrom(result, Memory.LONG_ARRAY, address, (long) n * 8);
  }

  private static void add(long[] result, long[] input, int n) {
    for (int i = 0; i < n; i++) {
      result[i] = result[i] + input[i];
    }
  }

  private static void multiply(long[] result, long[] input, int n) {
    for (int i = 0; i < n; i++) {
      result[i] = result[i] * input[i];
    }
  }

  private static void min(long[] result, long[] input, int n) {
    for (int i = 0; i < n; i++) {
      result[i] = Math.min(result[i], input[i]);
    }
  }

  private static void max(long[] result, long[] input, int n) {
    for (int i = 0; i < n; i++) {
      result[i] = Math.max(result[i], input[i]);
    }
  }
}
