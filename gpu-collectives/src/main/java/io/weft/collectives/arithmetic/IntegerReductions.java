package io.weft.collectives.arithmetic;

import io.weft.collectives.DataType;
import io.weft.collectives.ReduceOp;
import io.weft.memory.Memory;

/** The reductions of whole numbers, which wrap around as Java's do. */
final class IntegerReductions {
  private IntegerReductions() {}

  static final class ByteReduction extends Reduction {
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
        case SUM, AVERAGE -> add(result, input, looped(n));
        case PRODUCT -> multiply(result, input, looped(n));
        case MIN -> min(result, input, looped(n));
        case MAX -> max(result, input, looped(n));
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

  static final class ShortReduction extends Reduction {
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
        case SUM, AVERAGE -> add(result, input, looped(n));
        case PRODUCT -> multiply(result, input, looped(n));
        case MIN -> min(result, input, looped(n));
        case MAX -> max(result, input, looped(n));
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

  static final class IntReduction extends Reduction {
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
        case SUM, AVERAGE -> add(result, input, looped(n));
        case PRODUCT -> multiply(result, input, looped(n));
        case MIN -> min(result, input, looped(n));
        case MAX -> max(result, input, looped(n));
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

  static final class LongReduction extends Reduction {
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
        case SUM, AVERAGE -> add(result, input, looped(n));
        case PRODUCT -> multiply(result, input, looped(n));
        case MIN -> min(result, input, looped(n));
        case MAX -> max(result, input, looped(n));
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
}
