package io.weft.collectives.arithmetic;

import io.weft.collectives.DataType;
import io.weft.collectives.ReduceOp;
import io.weft.memory.Memory;

final class ByteReduction extends Reduction {
  private final ReduceOp op;
  private final byte[] result = new byte[TILE_BYTES];
  private final byte[] input = new byte[TILE_BYTES];

  ByteReduction(ReduceOp op) {
    super(DataType.INT8);
    this.op = op;
  }

  @Override
  void load(long address, int n) {
    Memory.copyTo(address, result, Memory.BYTE_ARRAY, n);
  }

  @Override
  void combine(long address, int n) {
    Memory.copyTo(address, input, Memory.BYTE_ARRAY, n);
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
      result[i] = (byte) (result[i] / divisor);
    }
  }

  @Override
  void store(long address, int n) {
    Memory.copyFrom(result, Memory.BYTE_ARRAY, address, n);
  }

  private static void add(byte[] result, byte[] input, int n) {
    for (int i = 0; i < n; i++) {
      result[i] = (byte) (result[i] + input[i]);
    }
  }

  private static void multiply(byte[] result, byte[] input, int n) {
    for (int i = 0; i < n; i++) {
      result[i] = (byte) (result[i] * input[i]);
    }
  }

  private static void min(byte[] result, byte[] input, int n) {
    for (int i = 0; i < n; i++) {
      result[i] = (byte) Math.min(result[i], input[i]);
    }
  }

  private static void max(byte[] result, byte[] input, int n) {
    for (int i = 0; i < n; i++) {
      result[i] = (byte) Math.max(result[i], input[i]);
    }
  }
}
