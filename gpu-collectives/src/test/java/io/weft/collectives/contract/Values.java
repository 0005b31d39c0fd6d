package io.weft.collectives.contract;

import io.weft.collectives.DataType;
import io.weft.collectives.ReduceOp;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.arithmetic.BFloat16;
import io.weft.collectives.arithmetic.Float16;
import io.weft.memory.Memory;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.function.LongToDoubleFunction;

/** Fills and reads buffers of any type through doubles. */
public final class Values {
  /** Values repeat after this prime number of elements, so that no two chunks are equal. */
  private static final int PERIOD = 4093;

  private static final int MAX_RANKS = 32;
  private static final int REDUCTIONS = ReduceOp.values().length;

  private static final double[][] OF_RANK = new double[MAX_RANKS][PERIOD];

  /** By type, reduction and number of ranks; filled on first use. */
  private static final AtomicReferenceArray<double[]> REDUCED =
      new AtomicReferenceArray<>(DataType.values().length * REDUCTIONS * (MAX_RANKS + 1));

  static {
    for (int rank = 0; rank < MAX_RANKS; rank++) {
      for (int index = 0; index < PERIOD; index++) {
        OF_RANK[rank][index] = compute(rank, index);
      }
    }
  }

  private Values() {}

  /**
   * Small numbers that differ by rank and index and are never zero. Every type holds their sums and
   * products over 8 ranks exactly.
   */
  public static double of(int rank, long index) {
    return OF_RANK[rank][(int) (index % PERIOD)];
  }

  private static double compute(int rank, int index) {
    long mixed = (rank + 1) * 0x9e3779b97f4a7c15L + index * 0xbf58476d1ce4e5b9L;
    return switch ((int) (mixed >>> 61) & 3) {
      case 0 -> 1;
      case 1 -> -1;
      case 2 -> 2;
      default -> -2;
    };
  }

  public static void fill(TypedBuffer buffer, LongToDoubleFunction value) {
    for (long i = 0; i < buffer.count(); i++) {
      put(buffer, i, value.applyAsDouble(i));
    }
  }

  public static void fill(TypedBuffer buffer, int rank) {
    fill(buffer, i -> of(rank, i));
  }

  public static void put(TypedBuffer buffer, long index, double value) {
    long address = buffer.address() + index * buffer.type().bytes();
    switch (buffer.type()) {
      case INT8 -> Memory.putByte(address, (byte) value);
      case INT16 -> Memory.putShort(address, (short) value);
      case INT32 -> Memory.putInt(address, (int) value);
      case INT64 -> Memory.putLong(address, (long) value);
      case FLOAT16 -> Memory.putShort(address, Float16.fromFloat((float) value));
      case BFLOAT16 -> Memory.putShort(address, BFloat16.fromFloat((float) value));
      case FLOAT32 -> Memory.putFloat(address, (float) value);
      case FLOAT64 -> Memory.putDouble(address, value);
    }
  }

  public static double get(TypedBuffer buffer, long index) {
    long address = buffer.address() + index * buffer.type().bytes();
    return switch (buffer.type()) {
      case INT8 -> Memory.getByte(address);
      case INT16 -> Memory.getShort(address);
      case INT32 -> Memory.getInt(address);
      case INT64 -> Memory.getLong(address);
      case FLOAT16 -> Float16.toFloat(Memory.getShort(address));
      case BFLOAT16 -> BFloat16.toFloat(Memory.getShort(address));
      case FLOAT32 -> Memory.getFloat(address);
      case FLOAT64 -> Memory.getDouble(address);
    };
  }

  /** The reduction of {@link #of} over all ranks at one index, as the type rounds it. */
  public static double reduced(DataType type, ReduceOp op, int nranks, long index) {
    int key = (type.ordinal() * REDUCTIONS + op.ordinal()) * (MAX_RANKS + 1);
    double[] all = REDUCED.get(key + nranks);
    if (all == null) {
      all = new double[PERIOD];
      for (int i = 0; i < PERIOD; i++) {
        all[i] = compute(type, op, nranks, i);
      }
      REDUCED.set(key + nranks, all);
    }
    return all[(int) (index % PERIOD)];
  }

  private static double compute(DataType type, ReduceOp op, int nranks, int index) {
    double result = of(0, index);
    for (int rank = 1; rank < nranks; rank++) {
      double value = of(rank, index);
      result =
          switch (op) {
            case SUM, AVERAGE -> result + value;
            case PRODUCT -> result * value;
            case MIN -> Math.min(result, value);
            case MAX -> Math.max(result, value);
          };
    }
    return op == ReduceOp.AVERAGE ? averaged(type, result, nranks) : result;
  }

  private static double averaged(DataType type, double sum, int nranks) {
    return switch (type) {
      case INT8, INT16, INT32, INT64 -> (double) ((long) sum / nranks);
      case FLOAT16 -> Float16.toFloat(Float16.fromFloat((float) sum / nranks));
      case BFLOAT16 -> BFloat16.toFloat(BFloat16.fromFloat((float) sum / nranks));
      case FLOAT32 -> (float) sum / nranks;
      case FLOAT64 -> sum / nranks;
    };
  }

  /** Compares every element and names the first that is wrong. */
  public static void check(String what, TypedBuffer buffer, LongToDoubleFunction expected) {
    for (long i = 0; i < buffer.count(); i++) {
      double actual = get(buffer, i);
      double wanted = expected.applyAsDouble(i);
      if (Double.doubleToLongBits(actual) != Double.doubleToLongBits(wanted)) {
        throw new AssertionError(
            what
                + ": element "
                + i
                + " of "
                + buffer.count()
                + " "
                + buffer.type()
                + " is "
                + actual
                + ", expected "
                + wanted);
      }
    }
  }
}
