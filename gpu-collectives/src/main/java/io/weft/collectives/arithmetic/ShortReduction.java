package io.weft.collectives.arithmetic;

import io.weft.collectives.DataType;
import io.weft.collectives.ReduceOp;
import io.weft.memory.Memory;

final class ShortReduction extends Reduction {
  private final ReduceOp op;
  private final short[] result = new short[TILE_BYTES / 2];
  private final short[] input = new short[TILE_BYTES / 2];

  ShortReduction(ReduceOp op) {
    super(DataType.INT16);
    this.op = op;
  }

  @Override
  void load(long address, int n) {
    Memory.copyTo(address, result, Memory.SHORT_ARRAY, (long) n * 2);
  }

  @Override
  void combine(long address, int n) {
    Memory.copyTo(address, input, Memory.SHORT_ARRAY, (long) n * 2);
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
      result[i] = (short) (result[i] / divisor);
    }
  }

  @Override
  void store(long address, int n) {
    Memory.copyFrom(result, Memory.SHORT_ARRAY, address, (long) n * 2);
  }

  private static void add(short[] result, short[] input, int n) {
    for (int i = 0; i < n; i++) {
      result[i] = (short) (result[i] + input[i]);
    }
  }

  private static void multiply(short[] result, short[] input, int n) {
    for (int i = 0; i < n; i++) {
      result[i] = (short) (result[i] * input[i]);
    }
  }

  private static void min(short[] result, short[] input, int n) {
    for (int i = 0; i < n; i++) {
      result[i] = (short) Math.min(result[i], input[i]);
    }
  }

  private static void max(short[] result, short[] input, int n) {
    for (int i = 0; i < n; i++) {
      result[i] = (short) Math.max(result[i], input[i]);
    }
  }
}
