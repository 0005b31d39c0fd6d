package io.weft.table;

import java.util.Arrays;
import java.util.List;
import java.util.Objects;

/**
 * Where everything of a table lies within its run of memory. Column after column: validity bits
 * where there may be nulls, lowest bit first and 1 for a value; then the values one behind the
 * other, or for strings the offsets, of 4 bytes and one more than there are rows, and the bytes.
 * Each section begins at a multiple of 64 bytes, and what is behind its last byte up to there is
 * zero in tables that Weft packs.
 *
 * <p>Immutable and thread-safe.
 */
public final class TableLayout {
  /** Sections and runs begin at multiples of it. */
  public static final int ALIGNMENT = 64;

  /** Most rows. */
  public static final int MOST_ROWS = Integer.MAX_VALUE - 1;

  /** Most columns. */
  public static final int MOST_COLUMNS = 1 << 16;

  private static final long MOST_BYTES = 1L << 46;

  private final List<TableColumn> columns;
  private final int rows;
  private final long[] stringBytes;

  /** Of the first section of each column, and the end of the last. */
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
   * The layout of a table.
   *
   * @param rows 0 to {@link #MOST_ROWS}
   * @param stringBytes for each column the bytes of all its strings, 0 to 2^31 - 1; 0 for others
   * @throws IllegalArgumentException when a number is out of its range
   */
  public static TableLayout of(List<TableColumn> columns, int rows, long... stringBytes) {
    if (rows < 0 || rows > MOST_ROWS || columns.size() > MOST_COLUMNS) {
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

  /** The layout of a table whose columns are all of fixed width. */
  public static TableLayout fixed(List<TableColumn> columns, int rows) {
    return of(columns, rows, new long[columns.size()]);
  }

  private static long requireRoom(long at, long bytes) {
    if (bytes > MOST_BYTES - at) {
      throw new IllegalArgumentException("a table of more than " + MOST_BYTES + " bytes");
    }
    return at + bytes;
  }

  private long sections(int c) {
    TableColumn column = columns.get(c);
    long validity = column.nullable() ? validityBytes() : 0;
    if (column.kind().isString()) {
      return validity + offsetBytes() + aligned(stringBytes[c]);
    }
    if (rows > 0 && column.width() > MOST_BYTES / rows) {
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

  /** The length of the run, a multiple of the alignment. */
  public long bytes() {
    return starts[columns.size()];
  }

  /** Bytes of all strings of a column; 0 for others. */
  public long stringBytes(int column) {
    return stringBytes[Objects.checkIndex(column, columns.size())];
  }

  /** Where the sections of a column begin. */
  long start(int column) {
    return starts[Objects.checkIndex(column, columns.size())];
  }

  /**
   * Where the validity bits of a column begin within the run.
   *
   * @throws IllegalArgumentException when the column has none
   */
  public long validity(int column) {
    long start = start(column);
    if (!columns.get(column).nullable()) {
      throw new IllegalArgumentException("column " + column + " of " + this + " has no validity");
    }
    return start;
  }

  /**
   * Where the offsets of the strings of a column begin within the run.
   *
   * @throws IllegalArgumentException when it has no strings
   */
  public long offsets(int column) {
    long start = start(column);
    if (!columns.get(column).kind().isString()) {
      throw new IllegalArgumentException("column " + column + " of " + this + " has no strings");
    }
    return columns.get(column).nullable() ? start + validityBytes() : start;
  }

  /** Where the values of a column, or the bytes of its strings, begin within the run. */
  public long data(int column) {
    long start = start(column);
    if (columns.get(column).kind().isString()) {
      return offsets(column) + offsetBytes();
    }
    return columns.get(column).nullable() ? start + validityBytes() : start;
  }

  /**
   * Bytes of the values of a column, or of its strings, without what follows up to the alignment.
   */
  public long dataBytes(int column) {
    TableColumn type = columns.get(Objects.checkIndex(column, columns.size()));
    return type.kind().isString() ? stringBytes[column] : rows * type.width();
  }

  /** Columns, rows and bytes of strings, for a message; see {@link TableLayoutCodec}. */
  public byte[] toBytes() {
    return TableLayoutCodec.write(this);
  }

  /**
   * Reads what {@link #toBytes} gave.
   *
   * @param mostBytes the most that the table may take: what is known of the memory it lies in
   * @throws IllegalArgumentException when it is no layout, or the table is larger; nothing large
   *     was allocated for it
   */
  public static TableLayout fromBytes(byte[] bytes, long mostBytes) {
    return TableLayoutCodec.read(bytes, mostBytes);
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
}
