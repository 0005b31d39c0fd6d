package io.weft.device.cuda;

import io.weft.device.cuda.KernelRun.Launch;
import io.weft.testgpus.SparkMurmur3;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;

/** A random table for kernels, every section of which is a byte array of its exact size. */
final class KernelTable {
  /** The codes of partition.h, and the bytes of a value; 0 for strings. */
  private static final int[] KEY_WIDTHS = {0, 1, 1, 2, 4, 8, 4, 8, 4, 8, 8, 16, 0, 0};

  private static final int BOOLEAN = 1;
  private static final int STRING = 12;
  private static final int TENSOR = 14;
  private static final int[] TENSOR_WIDTHS = {3, 12, 20, 24, 48};

  final int rows;
  final List<KernelColumn> columns = new ArrayList<>();

  /** A table of all kinds in turn. */
  KernelTable(Random random, int rows, int columns, boolean withTensors) {
    this.rows = rows;
    int first = random.nextInt(TENSOR);
    for (int c = 0; c < columns; c++) {
      int kind = 1 + (first + c) % (withTensors ? TENSOR : TENSOR - 1);
      this.columns.add(new KernelColumn(random, kind, c, rows));
    }
  }

  /** A table with the same columns as another one. */
  KernelTable(Random random, int rows, KernelTable like) {
    this.rows = rows;
    for (KernelColumn column : like.columns) {
      columns.add(new KernelColumn(random, column, rows));
    }
  }

  /** Spark's hash of a row. */
  int hash(int row, int seed) {
    int hash = seed;
    for (KernelColumn column : columns) {
      hash = column.isValid(row) ? column.hash(row, hash) : hash;
    }
    return hash;
  }

  /** Bytes up to the next multiple of 64. */
  static int section(int bytes) {
    return bytes + 63 & ~63;
  }

  /** A column. */
  static final class KernelColumn {
    final int kind;
    final int number;
    final int width;
    final byte[] validity;
    final byte[] data;
    final int[] offsets;

    KernelColumn(Random random, int kind, int number, int rows) {
      this(
          random,
          kind,
          number,
          kind == TENSOR ? TENSOR_WIDTHS[random.nextInt(TENSOR_WIDTHS.length)] : KEY_WIDTHS[kind],
          random.nextBoolean(),
          rows);
    }

    KernelColumn(Random random, KernelColumn like, int rows) {
      this(random, like.kind, like.number, like.width, like.isNullable(), rows);
    }

    private KernelColumn(
        Random random, int kind, int number, int width, boolean isNullable, int rows) {
      this.kind = kind;
      this.number = number;
      this.width = width;
      this.validity = isNullable ? new byte[(rows + 7) / 8] : new byte[0];
      random.nextBytes(validity);
      if (isNullable && rows % 8 != 0) {
        validity[rows / 8] &= (byte) ((1 << rows % 8) - 1);
      }
      this.offsets = isString() ? new int[rows + 1] : new int[0];
      for (int row = 0; isString() && row < rows; row++) {
        offsets[row + 1] = offsets[row] + length(random);
      }
      this.data = new byte[isString() ? offsets[rows] : rows * width];
      fill(random, rows);
    }

    private static int length(Random random) {
      int kind = random.nextInt(20);
      return kind == 0 ? random.nextInt(3000) : kind < 5 ? 0 : random.nextInt(12);
    }

    private void fill(Random random, int rows) {
      random.nextBytes(data);
      ByteBuffer values = ByteBuffer.wrap(data).order(ByteOrder.nativeOrder());
      for (int row = 0; row < rows && !isString() && kind != TENSOR; row++) {
        if (kind == BOOLEAN) {
          data[row] &= 1;
        } else if (random.nextInt(3) == 0) {
          special(random, values, row);
        }
      }
    }

    /** Zeros of both signs, infinities, NaNs, small numbers and the largest ones. */
    private void special(Random random, ByteBuffer values, int row) {
      int choice = random.nextInt(7);
      if (kind == 6) {
        int[] bits = {0, 1 << 31, 0x7fc00000, 0x7f800001, -1, 0x7f800000, 1};
        values.putInt(4 * row, bits[choice]);
      } else if (kind == 7) {
        long[] bits = {0, 1L << 63, 0x7ff8L << 48, 0x7ff0000000000001L, -1, 0x7ff0L << 48, 1};
        values.putLong(8 * row, bits[choice]);
      } else {
        byte sign = (byte) (random.nextBoolean() ? 0 : -1);
        int low = Math.min(width, choice);
        Arrays.fill(data, row * width + low, (row + 1) * width, sign);
      }
    }

    boolean isString() {
      return kind == STRING || kind == STRING + 1;
    }

    boolean isNullable() {
      return validity.length > 0;
    }

    /** Whether one thread copies a whole value. */
    boolean isNarrow() {
      return !isString() && Integer.bitCount(width) == 1 && width <= 16;
    }

    boolean isValid(int row) {
      return validity.length == 0 || (validity[row / 8] >> row % 8 & 1) != 0;
    }

    /** The bytes of a value; none of a null string. */
    byte[] value(int row) {
      if (!isString()) {
        return Arrays.copyOfRange(data, row * width, (row + 1) * width);
      }
      return isValid(row) ? Arrays.copyOfRange(data, offsets[row], offsets[row + 1]) : new byte[0];
    }

    private int hash(int row, int seed) {
      byte[] bytes = value(row);
      ByteBuffer value = ByteBuffer.wrap(bytes).order(ByteOrder.nativeOrder());
      return switch (kind) {
        case 1, 2 -> SparkMurmur3.ofInt(bytes[0], seed);
        case 3 -> SparkMurmur3.ofInt(value.getShort(), seed);
        case 4, 8 -> SparkMurmur3.ofInt(value.getInt(), seed);
        case 6 -> SparkMurmur3.ofFloat(value.getFloat(), seed);
        case 7 -> SparkMurmur3.ofDouble(value.getDouble(), seed);
        case 11 -> SparkMurmur3.ofBytes(decimal(value).toByteArray(), seed);
        case 12, 13 -> SparkMurmur3.ofBytes(bytes, seed);
        default -> SparkMurmur3.ofLong(value.getLong(), seed);
      };
    }

    private static BigInteger decimal(ByteBuffer value) {
      long low = value.getLong();
      return new BigInteger(ByteBuffer.allocate(16).putLong(value.getLong()).putLong(low).array());
    }

    /** Adds the struct of partition.h to the arguments, with buffers of the exact sizes. */
    void put(KernelRun run, Launch launch, int offsetsOrNone) {
      launch
          .address(run.buffer(data))
          .address(isNullable() ? run.buffer(validity) : -1)
          .address(offsetsOrNone >= 0 ? offsetsOrNone : isString() ? run.buffer(ints(offsets)) : -1)
          .longs(isString() ? data.length : width)
          .ints(kind, number);
    }
  }

  /** The bytes of numbers of 4 bytes. */
  static byte[] ints(int... values) {
    ByteBuffer bytes = ByteBuffer.allocate(4 * values.length).order(ByteOrder.nativeOrder());
    for (int value : values) {
      bytes.putInt(value);
    }
    return bytes.array();
  }

  /** The bytes of numbers of 8 bytes. */
  static byte[] longs(long... values) {
    ByteBuffer bytes = ByteBuffer.allocate(8 * values.length).order(ByteOrder.nativeOrder());
    for (long value : values) {
      bytes.putLong(value);
    }
    return bytes.array();
  }

  /** The numbers of 4 bytes in a buffer. */
  static int[] ints(ByteBuffer bytes) {
    int[] values = new int[bytes.capacity() / 4];
    bytes.asIntBuffer().get(values);
    return values;
  }
}
