package io.weft.shuffle.device;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.collectives.DataType;
import io.weft.tensor.TensorType;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;
import org.junit.jupiter.api.Test;

class TableLayoutTest {
  private static final List<TableColumn> COLUMNS =
      List.of(
          TableColumn.of(ColumnKind.INT, true),
          TableColumn.of(ColumnKind.STRING, true),
          TableColumn.tensors(TensorType.of(DataType.FLOAT32, 3, 5), false));

  @Test
  void sectionsFollowEachOther() {
    TableLayout layout = TableLayout.of(COLUMNS, 100, 0, 1000, 0);
    assertThat(layout.validity(0)).isZero();
    assertThat(layout.data(0)).isEqualTo(64);
    assertThat(layout.validity(1)).isEqualTo(64 + 448);
    assertThat(layout.offsets(1)).isEqualTo(512 + 64);
    assertThat(layout.data(1)).isEqualTo(576 + 448);
    assertThat(layout.data(2)).isEqualTo(1024 + 1024);
    assertThat(layout.bytes()).isEqualTo(2048 + 6016);
    assertThat(layout.dataBytes(0)).isEqualTo(400);
    assertThat(layout.dataBytes(1)).isEqualTo(1000);
    assertThat(layout.dataBytes(2)).isEqualTo(6000);
    assertThat(layout).hasToString("100 rows of [int?, string?, float32[3, 5]]");
  }

  @Test
  void columnHasOnlyTheSectionsOfItsType() {
    TableLayout layout = TableLayout.of(COLUMNS, 1, 0, 0, 0);
    assertThatThrownBy(() -> layout.validity(2)).hasMessageContaining("column 2 of 1 rows");
    assertThatThrownBy(() -> layout.offsets(0)).hasMessageContaining("has no strings");
    assertThatThrownBy(() -> layout.data(3)).isInstanceOf(IndexOutOfBoundsException.class);
    assertThatThrownBy(() -> layout.stringBytes(-1)).isInstanceOf(IndexOutOfBoundsException.class);
  }

  @Test
  void numbersOutOfRangeAreRefused() {
    assertThatThrownBy(() -> TableLayout.of(COLUMNS, -1, 0, 0, 0)).hasMessageContaining("-1 rows");
    assertThatThrownBy(() -> TableLayout.of(COLUMNS, Integer.MAX_VALUE, 0, 0, 0))
        .hasMessageContaining("2147483647 rows");
    assertThatThrownBy(() -> TableLayout.of(COLUMNS, 1, 0, 0))
        .hasMessageContaining("2 numbers of bytes for 3 columns");
    assertThatThrownBy(() -> TableLayout.of(COLUMNS, 1, 1, 0, 0))
        .hasMessageContaining("1 bytes of strings in column 0, int?");
    assertThatThrownBy(() -> TableLayout.of(COLUMNS, 1, 0, 1L << 31, 0))
        .hasMessageContaining("in column 1, string?");
    TableColumn wide = TableColumn.tensors(TensorType.of(DataType.INT8, 1L << 40), false);
    assertThatThrownBy(() -> TableLayout.fixed(List.of(wide), 1000))
        .hasMessageContaining("1000 rows of int8[1099511627776] are too many");
    assertThatThrownBy(() -> TableLayout.fixed(List.of(wide, wide, wide), 60))
        .hasMessageContaining("a table of more than");
    assertThatThrownBy(() -> new TableColumn(ColumnKind.TENSOR, null, true))
        .hasMessageContaining("TENSOR with rows of null");
  }

  @Property(tries = 200)
  void bytesDecodeToTheSameLayout(
      @ForAll long seed,
      @ForAll @IntRange(max = 60) int columns,
      @ForAll @IntRange(max = 1_000_000) int rows) {
    TableLayout layout = random(seed, columns, rows);
    byte[] bytes = layout.toBytes();
    TableLayout read = TableLayout.fromBytes(bytes, layout.bytes());
    assertThat(read).isEqualTo(layout).hasSameHashCodeAs(layout);
    assertThat(read.bytes()).isEqualTo(layout.bytes());
    for (int length = 0; length < bytes.length; length++) {
      byte[] part = Arrays.copyOf(bytes, length);
      assertThatThrownBy(() -> TableLayout.fromBytes(part, Long.MAX_VALUE))
          .isInstanceOf(IllegalArgumentException.class);
    }
    byte[] longer = Arrays.copyOf(bytes, bytes.length + 1);
    assertThatThrownBy(() -> TableLayout.fromBytes(longer, Long.MAX_VALUE))
        .hasMessageContaining("1 bytes after a table's layout");
    if (layout.bytes() > 0) {
      assertThatThrownBy(() -> TableLayout.fromBytes(bytes, layout.bytes() - 1))
          .hasMessageContaining("there are " + (layout.bytes() - 1));
    }
  }

  private static TableLayout random(long seed, int columns, int rows) {
    List<TableColumn> types = new RandomTable(seed, 0, 0).columns(columns);
    Random random = new Random(seed);
    long[] stringBytes =
        types.stream()
            .mapToLong(type -> type.kind().isString() ? random.nextInt(1 << 20) : 0)
            .toArray();
    return TableLayout.of(types, rows, stringBytes);
  }

  /** Any bytes are either a layout within its limit, or an error with a reason. */
  @Property(tries = 2000)
  void anyBytesAreALayoutOrAnError(
      @ForAll long seed, @ForAll @IntRange(min = 1, max = 6) int flips) {
    byte[] bytes = random(seed, 5, 1000).toBytes();
    Random random = new Random(seed);
    for (int i = 0; i < flips; i++) {
      bytes[random.nextInt(bytes.length)] = (byte) random.nextInt();
    }
    try {
      assertThat(TableLayout.fromBytes(bytes, 1 << 30).bytes()).isBetween(0L, 1L << 30);
    } catch (IllegalArgumentException e) {
      assertThat(e).hasMessageMatching("(?s).+");
    }
  }

  @Test
  void hugeColumnCountAllocatesNothing() {
    byte[] bytes = ByteBuffer.allocate(9).put((byte) 1).putInt(1).putInt(Integer.MAX_VALUE).array();
    assertThatThrownBy(() -> TableLayout.fromBytes(bytes, 1 << 20))
        .hasMessageContaining("2147483647 columns in 0 bytes");
    bytes[0] = 9;
    assertThatThrownBy(() -> TableLayout.fromBytes(bytes, 1 << 20))
        .hasMessageContaining("of version 9");
  }
}
