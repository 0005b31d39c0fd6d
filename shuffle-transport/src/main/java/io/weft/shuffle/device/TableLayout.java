package io.weft.shuffle.device;

import io.weft.collectives.DataType;
import io.weft.tensor.TensorType;
import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.stream.IntStream;

/**
 * The offsets of all parts of a table within its memory range. Each column has these sections,
 * column after column: validity bits if it is nullable, lowest bit first and 1 for a value; then
 * the values. For strings, the offsets precede the bytes; an offset has 4 bytes, and there is one
 * more than rows. Each section begins at a multiple of 64 bytes. The padding after its last byte is
 * zero in tables that Weft packs.
 *
 * <p>Immutable and thread-safe.
 */
public final class TableLayout {
  /** Sections and tables begin at multiples of this. */
  public static final int ALIGNMENT = 64;

  /** The limit of rows. */
  public static final int MAX_ROWS = Integer.MAX_VALUE - 1;

  /** The limit of columns. */
  public static final int MAX_COLUMNS = 1 << 16;

  private static final long MAX_BYTES = 1L << 46;

  private final List<TableColumn> columns;
  private final int rows;
  private final long[] stringBytes;

  /** The offset of the first section of each column, then the end of the last. */
  private final long[] starts;

  private TableLayout(List<TableColumn> columns, int rows, long[] stringBytes) {
    this.columns = columns;
    this.rows = rows;
    this.stringBytes = stringBytes;
    this.starts = new long[columns.size() + 1];
    long at = 0;
    for (int c = 0; c < columns.size(); c++) {
      starts[c] = at;
      at = requireRoom(at, sections(c));
    }
    starts[columns.size()] = at;
  }

  /**
   * Creates the layout of a table.
   *
   * @param rows 0 to {@link #MAX_ROWS}
   * @param stringBytes for each column the bytes of all its strings, 0 to 2^31 - 1; 0 for other
   *     columns
   * @throws IllegalArgumentException if a number is out of its range
   */
  public static TableLayout of(List<TableColumn> columns, int rows, long... stringBytes) {
    if (rows < 0 || rows > MAX_ROWS || columns.size() > MAX_COLUMNS) {
      throw new IllegalArgumentException(
          "a table of " + rows + " rows and " + columns.size() + " columns");
    }
    if (stringBytes.length != columns.size()) {
      throw new IllegalArgumentException(
          stringBytes.length + " numbers of bytes for " + columns.size() + " columns");
    }
    for (int c = 0; c < stringBytes.length; c++) {
      long most = columns.get(c).kind().isString() ? Integer.MAX_VALUE : 0;
      if (stringBytes[c] < 0 || stringBytes[c] > most) {
        throw new IllegalArgumentException(
            stringBytes[c] + " bytes of strings in column " + c + ", " + columns.get(c));
      }
    }
    return new TableLayout(List.copyOf(columns), rows, stringBytes.clone());
  }

  /** Creates the layout of a table whose columns all have fixed width. */
  public static TableLayout fixed(List<TableColumn> columns, int rows) {
    return of(columns, rows, new long[columns.size()]);
  }

  /** The layout of a table that has only some of these columns, in a given order. */
  public TableLayout only(int... numbers) {
    return of(
        IntStream.of(numbers).mapToObj(columns::get).toList(),
        rows,
        IntStream.of(numbers).mapToLong(c -> stringBytes[c]).toArray());
  }

  private static long requireRoom(long at, long bytes) {
    if (bytes > MAX_BYTES - at) {
      throw new IllegalArgumentException("a table of more than " + MAX_BYTES + " bytes");
    }
    return at + bytes;
  }

  private long sections(int c) {
    TableColumn column = columns.get(c);
    long validity = column.nullable() ? validityBytes() : 0;
    if (column.kind().isString()) {
      return validity + offsetBytes() + aligned(stringBytes[c]);
    }
    if (rows > 0 && column.width() > MAX_BYTES / rows) {
      throw new IllegalArgumentException(rows + " rows of " + column + " are too many");
    }
    return validity + aligned(rows * column.width());
  }

  /** The next multiple of the alignment. */
  static long aligned(long bytes) {
    return (bytes + ALIGNMENT - 1) & -ALIGNMENT;
  }

  private long validityBytes() {
    return aligned((rows + 7L) / 8);
  }

  private long offsetBytes() {
    return aligned((rows + 1L) * Integer.BYTES);
  }

  public List<TableColumn> columns() {
    return columns;
  }

  public int rows() {
    return rows;
  }

  /** The length of the table, a multiple of the alignment. */
  public long bytes() {
    return starts[columns.size()];
  }

  /** The bytes of all strings of a column; 0 for other columns. */
  public long stringBytes(int column) {
    return stringBytes[Objects.checkIndex(column, columns.size())];
  }

  /** The offset of the sections of a column. */
  long start(int column) {
    return starts[Objects.checkIndex(column, columns.size())];
  }

  /**
   * The offset of the validity bits of a column.
   *
   * @throws IllegalArgumentException if the column has none
   */
  public long validity(int column) {
    long start = start(column);
    if (!columns.get(column).nullable()) {
      throw new IllegalArgumentException("column " + column + " of " + this + " has no validity");
    }
    return start;
  }

  /**
   * The offset of the string offsets of a column.
   *
   * @throws IllegalArgumentException if the column has no strings
   */
  public long offsets(int column) {
    long start = start(column);
    if (!columns.get(column).kind().isString()) {
      throw new IllegalArgumentException("column " + column + " of " + this + " has no strings");
    }
    return columns.get(column).nullable() ? start + validityBytes() : start;
  }

  /** The offset of the values of a column, or of the bytes of its strings. */
  public long data(int column) {
    long start = start(column);
    if (columns.get(column).kind().isString()) {
      return offsets(column) + offsetBytes();
    }
    return columns.get(column).nullable() ? start + validityBytes() : start;
  }

  /** The size of the values of a column, or of its string bytes, without padding. */
  public long dataBytes(int column) {
    TableColumn type = columns.get(Objects.checkIndex(column, columns.size()));
    return type.kind().isString() ? stringBytes[column] : rows * type.width();
  }

  /** Encodes columns, rows and string bytes for a message; see {@link TableLayoutCodec}. */
  public byte[] toBytes() {
    return TableLayoutCodec.write(this);
  }

  /**
   * Decodes the result of {@link #toBytes}.
   *
   * @param maxBytes the limit of the table's size, from the size of its memory
   * @throws IllegalArgumentException if it is not a layout, or the table is larger; no large memory
   *     was allocated then
   */
  public static TableLayout fromBytes(byte[] bytes, long maxBytes) {
    return TableLayoutCodec.read(bytes, maxBytes);
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof TableLayout layout
        && rows == layout.rows
        && columns.equals(layout.columns)
        && Arrays.equals(stringBytes, layout.stringBytes);
  }

  @Override
  public int hashCode() {
    return 31 * (31 * columns.hashCode() + rows) + Arrays.hashCode(stringBytes);
  }

  @Override
  public String toString() {
    return rows + " rows of " + columns;
  }

  /**
   * Encodes layouts, big-endian: version, rows, number of columns. For each column follow its kind
   * and whether it is nullable; for strings their bytes; for tensors type, rank and sizes.
   * Stateless.
   */
  static final class TableLayoutCodec {
    private static final byte VERSION = 1;
    private static final int HEAD_BYTES = 1 + 4 + 4;
    private static final int MAX_COLUMN_BYTES = 2 + 2 + TensorType.MAX_DIMENSIONS * Long.BYTES;
    private static final int LEAST_COLUMN_BYTES = 2;

    private TableLayoutCodec() {}

    static byte[] write(TableLayout layout) {
      int columns = layout.columns().size();
      ByteBuffer out = ByteBuffer.allocate(HEAD_BYTES + columns * MAX_COLUMN_BYTES);
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

    static TableLayout read(byte[] bytes, long maxBytes) {
      ByteBuffer in = ByteBuffer.wrap(bytes);
      try {
        TableLayout layout = read(in);
        if (in.hasRemaining()) {
          throw new IllegalArgumentException(in.remaining() + " bytes after a table's layout");
        }
        if (layout.bytes() > maxBytes) {
          throw new IllegalArgumentException(
              layout + " takes " + layout.bytes() + " bytes; there are " + maxBytes);
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
      if (rank < 0 || rank > TensorType.MAX_DIMENSIONS) {
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
}
