package io.weft.collectives.arithmetic;

import io.weft.collectives.DataType;
import io.weft.collectives.ReduceOp;
import io.weft.memory.Memory;

/** The reductions of floats. */
final class FloatReductions {
  private FloatReductions() {}

  /**
   * Reduces the 16-bit floats: widens once per source, computes in float32, and rounds once at the
   * end.
   */
  static final class HalfReduction extends Reduction {
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

  static final class FloatReduction extends Reduction {
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

  static final class DoubleReduction extends Reduction {
    private final ReduceOp op;
    private final double[] result = new double[TILE_BYTES / 8];
    private final double[] input = new double[TILE_BYTES / 8];

    DoubleReduction(ReduceOp op) {
      super(DataType.FLOAT64);
      this.op = op;
    }

    @Override
    void load(long address, int n) {
      Memory.copyTo(address, result, Memory.DOUBLE_ARRAY, (long) n * 8);
    }

    @Override
    void combine(long address, int n) {
      Memory.copyTo(address, input, Memory.DOUBLE_ARRAY, (long) n * 8);
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
      Memory.copyFrom(result, Memory.DOUBLE_ARRAY, address, (long) n * 8);
    }

    private static void add(double[] result, double[] input, int n) {
      for (int i = 0; i < n; i++) {
        result[i] = result[i] + input[i];
      }
    }

    private static void multiply(double[] result, double[] input, int n) {
      for (int i = 0; i < n; i++) {
        result[i] = result[i] * input[i];
      }
    }

    private static void min(double[] result, double[] input, int n) {
      for (int i = 0; i < n; i++) {
        result[i] = Math.min(result[i], input[i]);
      }
    }

    private static void max(double[] result, double[] input, int n) {
      for (int i = 0; i < n; i++) {
        result[i] = Math.max(result[i], input[i]);
      }
    }
  }
}
