package io.weft.table;

import io.weft.memory.Memory;
import java.util.List;
import java.util.stream.IntStream;

/**
 * The inputs of a concatenation and their places in the result, as far as layouts define them. Also
 * the form in which kernels receive them: first rows, then sections of validity and of offsets,
 * then a piece for each column of each table.
 *
 * @param tables those with rows
 * @param layout of the result
 * @param nullable columns of the result with validity
 * @param strings columns with offsets
 */
record ConcatPlan(
    List<TableLayout> tables, TableLayout layout, List<Integer> nullable, List<Integer> strings) {
  static final long PIECE_BYTES = 64;
  private static final long SECTION_BYTES = 16;

  static ConcatPlan of(List<TableLayout> all) {
    TableLayout layout = TableConcatenator.layout(all);
    List<TableLayout> tables = all.stream().filter(table -> table.rows() > 0).toList();
    if (tables.isEmpty()) {
      throw new IllegalArgumentException("there are no rows to concatenate");
    }
    List<TableColumn> columns = layout.columns();
    return new ConcatPlan(
        tables,
        layout,
        IntStream.range(0, columns.size()).filter(c -> columns.get(c).nullable()).boxed().toList(),
        IntStream.range(0, columns.size())
            .filter(c -> columns.get(c).kind().isString())
            .boxed()
            .toList());
  }

  int columns() {
    return layout.columns().size();
  }

  /** Where the first row of a table is written. */
  static long first(int table) {
    return 8L * table;
  }

  long validitySections() {
    return first(tables.size() + 1);
  }

  long offsetSections() {
    return validitySections() + SECTION_BYTES * nullable.size();
  }

  /** Where the pieces of a table are written. */
  long pieces(int table) {
    return offsetSections()
        + SECTION_BYTES * strings.size()
        + PIECE_BYTES * columns() * (long) table;
  }

  /** The size of all arguments. */
  long bytes() {
    return pieces(tables.size());
  }

  /** Writes everything but the pieces, which are only known with their tables. */
  void writeHead(long to, long run) {
    long row = 0;
    for (int t = 0; t < tables.size(); t++) {
      Memory.putLong(to + first(t), row);
      row += tables.get(t).rows();
    }
    Memory.putLong(to + first(tables.size()), row);
    long at = to + validitySections();
    for (int column : nullable) {
      at = writeSection(at, column, run + layout.validity(column));
    }
    for (int column : strings) {
      at = writeSection(at, column, run + layout.offsets(column));
    }
  }

  private static long writeSection(long at, int column, long section) {
    Memory.putLong(at, column);
    Memory.putLong(at + 8, section);
    return at + SECTION_BYTES;
  }
}
