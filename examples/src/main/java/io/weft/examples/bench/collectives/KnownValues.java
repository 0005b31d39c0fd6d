package io.weft.examples.bench.collectives;

import io.weft.collectives.arithmetic.BFloat16;
import io.weft.collectives.arithmetic.Float16;
import io.weft.collectives.buffer.TypedBuffer;
import io.weft.memory.Memory;

/**
 * Small numbers that every rank can work out, for all ranks. Of large buffers a million elements
 * are set and compared, spread evenly. The same numbers as in {@code mpi-collectives.c}.
 */
final class KnownValues {
  private static final long COMPARED = 1 << 20;

  private final CollectiveCase test;
  private final int rank;
  private final long stride;

  KnownValues(CollectiveCase test, int rank) {
    this.test = test;
    this.rank = rank;
    this.stride = 1 + test.count() / COMPARED;
  }

  private static long value(long index, long ofRank) {
    return (index * 7 + ofRank * 3) % 11;
  }

  /** Sets what this rank sends. */
  void fill(TypedBuffer send) {
    for (long start = 0; start < send.count(); start += test.count()) {
      for (long i = start; i < start + test.count(); i += stride) {
        put(send, i, value(i, rank));
      }
    }
  }

  /** How many of the elements received are wrong. */
  long errors(TypedBuffer receive) {
    if (isReduceElsewhere()) {
      return 0;
    }
    long errors = 0;
    for (long start = 0; start < receive.count(); start += test.count()) {
      for (long i = start; i < start + test.count(); i += stride) {
        if (Math.abs(get(receive, i) - expected(i)) > 1e-2) {
          errors++;
        }
      }
    }
    return errors;
  }

  private boolean isReduceElsewhere() {
    return switch (test.operation()) {
      case REDUCE -> rank != 0;
      default -> false;
    };
  }

  private double expected(long index) {
    long part = index / test.count();
    long within = index % test.count();
    return switch (test.operation()) {
      case ALL_GATHER -> value(within, part);
      case ALL_TO_ALL -> value(rank * test.count() + within, part);
      case REDUCE_SCATTER -> reduced(rank * test.count() + within);
      case BROADCAST -> value(index, 0);
      default -> reduced(index);
    };
  }

  private double reduced(long index) {
    double all = value(index, 0);
    for (int other = 1; other < test.nranks(); other++) {
      double next = value(index, other);
      all =
          switch (test.reduction()) {
            case SUM, AVERAGE -> all + next;
            case PRODUCT -> all * next;
            case MIN -> Math.min(all, next);
            case MAX -> Math.max(all, next);
          };
    }
    return switch (test.reduction()) {
      case AVERAGE -> isInteger() ? Math.floor(all / test.nranks()) : all / test.nranks();
      default -> all;
    };
  }

  private boolean isInteger() {
    return switch (test.type()) {
      case INT8, INT16, INT32, INT64 -> true;
      default -> false;
    };
  }

  private static void put(TypedBuffer buffer, long index, long value) {
    long address = buffer.address() + index * buffer.type().bytes();
    switch (buffer.type()) {
      case INT8 -> Memory.putByte(address, (byte) value);
      case INT16 -> Memory.putShort(address, (short) value);
      case INT32 -> Memory.putInt(address, (int) value);
      case INT64 -> Memory.putLong(address, value);
      case FLOAT16 -> Memory.putShort(address, Float16.fromFloat((float) value));
      case BFLOAT16 -> Memory.putShort(address, BFloat16.fromFloat((float) value));
      case FLOAT32 -> Memory.putFloat(address, (float) value);
      case FLOAT64 -> Memory.putDouble(address, (double) value);
    }
  }

  private static double get(TypedBuffer buffer, long index) {
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
}
