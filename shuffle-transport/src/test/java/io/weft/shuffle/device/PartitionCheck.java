package io.weft.shuffle.device;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.memory.Memory;
import java.util.stream.IntStream;

/** Compares partitions of a table with the rows that belong there. */
final class PartitionCheck {
  private final HostTable table;
  private final int[] kept;

  PartitionCheck(HostTable table) {
    this(table, IntStream.range(0, table.layout().columns().size()).toArray());
  }

  /** Checks partitions that have only some columns of the table. */
  PartitionCheck(HostTable table, int... kept) {
    this.table = table;
    this.kept = kept;
  }

  /** Checks that the partition has these rows of the table, in this order, and zero padding. */
  void assertRows(HostTable part, int[] rows) {
    assertThat(part.layout().rows()).isEqualTo(rows.length);
    assertThat(part.layout().columns())
        .isEqualTo(IntStream.of(kept).mapToObj(table.layout().columns()::get).toList());
    for (int c = 0; c < kept.length; c++) {
      for (int i = 0; i < rows.length; i++) {
        assertValue(part, c, i, rows[i]);
      }
      assertTails(part, c);
    }
  }

  private void assertValue(HostTable part, int column, int at, int row) {
    boolean isValid = table.isValid(kept[column], row);
    if (part.isValid(column, at) != isValid) {
      throw new AssertionError(describe(column, at, row) + " is null on one side");
    }
    if (isValid && !part.value(column, at).equals(table.value(kept[column], row))) {
      throw new AssertionError(describe(column, at, row) + " differs");
    }
  }

  private String describe(int column, int at, int row) {
    return "row " + row + " of column " + column + " of " + table.layout() + ", here row " + at;
  }

  /** Checks that the padding of every section is zero. */
  static void assertTails(HostTable part) {
    for (int c = 0; c < part.layout().columns().size(); c++) {
      assertTails(part, c);
    }
  }

  private static void assertTails(HostTable part, int column) {
    TableLayout layout = part.layout();
    TableColumn type = layout.columns().get(column);
    assertZeros(part, layout.data(column) + layout.dataBytes(column));
    if (type.kind().isString()) {
      assertZeros(part, layout.offsets(column) + 4 * (layout.rows() + 1L));
      assertThat(Memory.getInt(part.address() + layout.offsets(column))).isZero();
    }
    if (type.nullable()) {
      assertZeros(part, layout.validity(column) + (layout.rows() + 7) / 8);
    }
  }

  private static void assertZeros(HostTable part, long from) {
    for (long at = from; at % TableLayout.ALIGNMENT != 0; at++) {
      assertThat(Memory.getByte(part.address() + at)).isZero();
    }
  }
}
