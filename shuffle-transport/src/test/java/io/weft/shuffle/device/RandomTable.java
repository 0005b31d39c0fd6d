package io.weft.shuffle.device;

import io.weft.collectives.DataType;
import io.weft.device.cuda.CudaMemoryPool;
import io.weft.memory.Memory;
import io.weft.tensor.TensorType;
import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;

/** Tables of any columns with values that need special care in hashes; the same for one seed. */
final class RandomTable {
  private final Random random;

  /** The number of nulls among 10 values. */
  private final int nulls;

  private final int longestString;

  RandomTable(long seed, int nulls, int longestString) {
    this.random = new Random(seed);
    this.nulls = nulls;
    this.longestString = longestString;
  }

  /** The given number of columns; every kind occurs before one is repeated. */
  List<TableColumn> columns(int count) {
    List<TableColumn> columns = new ArrayList<>();
    int first = random.nextInt(ColumnKind.values().length);
    for (int c = 0; c < count; c++) {
      ColumnKind kind = ColumnKind.values()[(first + c) % ColumnKind.values().length];
      boolean nullable = random.nextBoolean();
      columns.add(
          kind == ColumnKind.TENSOR
              ? TableColumn.tensors(tensor(), nullable)
              : TableColumn.of(kind, nullable));
    }
    return columns;
  }

  private TensorType tensor() {
    DataType[] types = DataType.values();
    return TensorType.of(
        types[random.nextInt(types.length)], random.nextInt(4), 1 + random.nextInt(9));
  }

  /** A table of those columns. */
  HostTable fill(CudaMemoryPool pinned, List<TableColumn> columns, int rows) {
    int[][] offsets = new int[columns.size()][];
    long[] stringBytes = new long[columns.size()];
    for (int c = 0; c < columns.size(); c++) {
      if (columns.get(c).kind().isString()) {
        offsets[c] = offsets(rows);
        stringBytes[c] = offsets[c][rows];
      }
    }
    HostTable table = HostTable.allocate(pinned, TableLayout.of(columns, rows, stringBytes));
    for (int c = 0; c < columns.size(); c++) {
      putValidity(table, c);
      if (offsets[c] == null) {
        table.putValues(c, values(table, c));
      } else {
        putStrings(table, c, offsets[c]);
      }
    }
    return table;
  }

  private int[] offsets(int rows) {
    int[] offsets = new int[rows + 1];
    for (int row = 0; row < rows; row++) {
      offsets[row + 1] = offsets[row] + random.nextInt(longestString + 1);
    }
    return offsets;
  }

  private void putValidity(HostTable table, int column) {
    if (table.layout().columns().get(column).nullable()) {
      ByteBuffer bits = ByteBuffer.allocateDirect(table.layout().rows() / 8 + 1);
      for (int row = 0; row < table.layout().rows(); row++) {
        int bit = random.nextInt(10) < nulls ? 0 : 1;
        bits.put(row / 8, (byte) (bits.get(row / 8) | bit << row % 8));
      }
      table.putValidity(column, Memory.addressOf(bits));
      Reference.reachabilityFence(bits);
    }
  }

  private void putStrings(HostTable table, int column, int[] offsets) {
    ByteBuffer ints = ByteBuffer.allocateDirect(4 * offsets.length).order(ByteOrder.nativeOrder());
    ByteBuffer bytes = ByteBuffer.allocateDirect(5 + offsets[offsets.length - 1]);
    for (int offset : offsets) {
      ints.putInt(5 + offset); // As in a slice of an Arrow vector.
    }
    byte[] content = new byte[bytes.capacity()];
    random.nextBytes(content);
    bytes.put(content);
    table.putStrings(column, Memory.addressOf(ints), Memory.addressOf(bytes));
    Reference.reachabilityFence(ints);
    Reference.reachabilityFence(bytes);
  }

  private ByteBuffer values(HostTable table, int column) {
    TableColumn type = table.layout().columns().get(column);
    int bytes = Math.toIntExact(table.layout().dataBytes(column));
    ByteBuffer values = ByteBuffer.allocate(bytes).order(ByteOrder.nativeOrder());
    while (values.hasRemaining()) {
      putValue(values, type);
    }
    return values.flip();
  }

  private void putValue(ByteBuffer values, TableColumn type) {
    switch (type.kind()) {
      case BOOLEAN -> values.put((byte) random.nextInt(2));
      case FLOAT -> values.putInt(floatBits());
      case DOUBLE -> values.putLong(doubleBits());
      case DECIMAL128 -> {
        long low = random.nextLong() >> random.nextInt(64);
        boolean isShort = random.nextBoolean();
        values.putLong(low).putLong(isShort ? low >> 63 : random.nextLong() >> random.nextInt(64));
      }
      default -> {
        byte[] any = new byte[Math.toIntExact(type.width())];
        random.nextBytes(any);
        values.put(any);
      }
    }
  }

  private int floatBits() {
    return switch (random.nextInt(5)) {
      case 0 -> 0;
      case 1 -> 0x80000000;
      case 2 -> 0x7f800001 + random.nextInt(1000);
      case 3 -> 0xff800000;
      default -> Float.floatToRawIntBits((float) random.nextGaussian());
    };
  }

  private long doubleBits() {
    return switch (random.nextInt(5)) {
      case 0 -> 0;
      case 1 -> 1L << 63;
      case 2 -> 0xfff0000000000001L + random.nextInt(1000);
      case 3 -> 0x7ff0000000000000L;
      default -> Double.doubleToRawLongBits(random.nextGaussian());
    };
  }
}
