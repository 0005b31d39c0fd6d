package io.weft.table;

import io.weft.collectives.buffer.DataType;
import io.weft.tensor.TensorType;
import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

/**
 * Encodes layouts, big-endian: version, rows, number of columns. For each column follow its kind
 * and whether it is nullable; for strings their bytes; for tensors type, rank and sizes. Stateless.
 */
final class TableLayoutCodec {
  private static final byte VERSION = 1;
  private static final int HEAD_BYTES = 1 + 4 + 4;
  private static final int MOST_COLUMN_BYTES = 2 + 2 + TensorType.MOST_DIMENSIONS * Long.BYTES;
  private static final int LEAST_COLUMN_BYTES = 2;

  private TableLayoutCodec() {}

  static byte[] write(TableLayout layout) {
    int columns = layout.columns().size();
    ByteBuffer out = ByteBuffer.allocate(HEAD_BYTES + columns * MOST_COLUMN_BYTES);
    out.put(VERSION).putInt(layout.rows()).putInt(columns);
    for (int c = 0; c < columns; c++) {
      TableColumn column = layout.columns().get(c);
      out.put((byte) column.kind().code()).put((byte) (column.nullable() ? 1 : 0));
      if (column.kind().isString()) {
        out.putLong(layout.stringBytes(c));
      } else if (column.kind() == ColumnKind.TENSOR) {
        writeTensor(out, column.tensor());
      }
    }
    byte[] bytes = new byte[out.position()];
    out.flip().get(bytes);
    return bytes;
  }

  private static void writeTensor(ByteBuffer out, TensorType type) {
    out.put((byte) type.dtype().code()).put((byte) type.rank());
    for (long size : type.shape()) {
      out.putLong(size);
    }
  }

  static TableLayout read(byte[] bytes, long mostBytes) {
    ByteBuffer in = ByteBuffer.wrap(bytes);
    try {
      TableLayout layout = read(in);
      if (in.hasRemaining()) {
        throw new IllegalArgumentException(in.remaining() + " bytes after a table's layout");
      }
      if (layout.bytes() > mostBytes) {
        throw new IllegalArgumentException(
            layout + " takes " + layout.bytes() + " bytes; there are " + mostBytes);
      }
      return layout;
    } catch (BufferUnderflowException e) {
      throw new IllegalArgumentException("a table's layout ends after " + bytes.length, e);
    }
  }

  private static TableLayout read(ByteBuffer in) {
    byte version = in.get();
    if (version != VERSION) {
      throw new IllegalArgumentException("a table's layout of version " + version);
    }
    int rows = in.getInt();
    int count = in.getInt();
    if (count < 0 || count > in.remaining() / LEAST_COLUMN_BYTES) {
      throw new IllegalArgumentException(count + " columns in " + in.remaining() + " bytes");
    }
    List<TableColumn> columns = new ArrayList<>(count);
    long[] stringBytes = new long[count];
    for (int c = 0; c < count; c++) {
      ColumnKind kind = ColumnKind.ofCode(in.get());
      boolean nullable = readFlag(in);
      stringBytes[c] = kind.isString() ? in.getLong() : 0;
      columns.add(new TableColumn(kind, kind == ColumnKind.TENSOR ? tensor(in) : null, nullable));
    }
    return TableLayout.of(columns, rows, stringBytes);
  }

  private static boolean readFlag(ByteBuffer in) {
    byte flag = in.get();
    if (flag < 0 || flag > 1) {
      throw new IllegalArgumentException("the nullable flag of a column is 0 or 1, not " + flag);
    }
    return flag == 1;
  }

  private static TensorType tensor(ByteBuffer in) {
    DataType dtype = dtype(in.get());
    int rank = in.get();
    if (rank < 0 || rank > TensorType.MOST_DIMENSIONS) {
      throw new IllegalArgumentException("rows of " + rank + " dimensions");
    }
    long[] shape = new long[rank];
    for (int i = 0; i < rank; i++) {
      shape[i] = in.getLong();
    }
    return TensorType.of(dtype, shape);
  }

  private static DataType dtype(int code) {
    for (DataType type : DataType.values()) {
      if (type.code() == code) {
        return type;
      }
    }
    throw new IllegalArgumentException("no data type has the code " + code);
  }
}
