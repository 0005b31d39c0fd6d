package io.weft.shuffle.device;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.collectives.DataType;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.NoRoomException;
import io.weft.tensor.TensorType;
import io.weft.testgpus.UsesGpu;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

@UsesGpu
class TableConcatenatorTest {
  private TableGpu gpu;
  private TableConcatenator concatenator;
  private final List<HostTable> tables = new ArrayList<>();

  @BeforeEach
  void open() {
    gpu = new TableGpu();
    gpu.soil();
    concatenator = TableConcatenator.open(gpu.memory, gpu.pinned);
  }

  @AfterEach
  void nothingIsLeaked() {
    gpu.lane.drain(TableGpu.deadline());
    tables.forEach(HostTable::close);
    concatenator.close();
    gpu.close();
  }

  /** Some columns have validity in only some of the tables. */
  private static List<TableColumn> mixed(List<TableColumn> columns, Random random) {
    return columns.stream()
        .map(
            column ->
                new TableColumn(
                    column.kind(), column.tensor(), column.nullable() && random.nextBoolean()))
        .toList();
  }

  private void fill(long seed, int longestString, int columns, int... rows) {
    RandomTable values = new RandomTable(seed, 4, longestString);
    List<TableColumn> types = values.columns(columns);
    Random random = new Random(seed);
    for (int each : rows) {
      tables.add(values.fill(gpu.pinned, mixed(types, random), each));
    }
  }

  private List<TableLayout> layouts() {
    return tables.stream().map(HostTable::layout).toList();
  }

  /**
   * Concatenates the tables, with the given number in each launch; each is closed once its launch
   * is enqueued.
   */
  private DeviceTable together(int atOnce) {
    try (Concatenation made = concatenator.start(gpu.lane, layouts())) {
      List<DeviceTable> there = new ArrayList<>();
      for (HostTable table : tables) {
        there.add(table.upload(gpu.lane, gpu.memory));
        made.add(there.get(there.size() - 1));
        if (there.size() == atOnce) {
          assertThat(made.enqueue()).isNotNull();
          there.forEach(DeviceTable::close);
          there.clear();
        }
      }
      DeviceTable finished = made.finish();
      there.forEach(DeviceTable::close);
      return finished;
    }
  }

  private void assertTogether(int atOnce) {
    try (DeviceTable there = together(atOnce);
        HostTable found = HostTable.download(gpu.lane, there, gpu.pinned)) {
      found.ready().await(TableGpu.deadline());
      int first = 0;
      for (HostTable table : tables) {
        assertRows(found, first, table);
        first += table.layout().rows();
      }
      assertThat(found.layout().rows()).isEqualTo(first);
      PartitionCheck.assertTails(found);
    }
  }

  private static void assertRows(HostTable found, int first, HostTable table) {
    for (int c = 0; c < table.layout().columns().size(); c++) {
      for (int row = 0; row < table.layout().rows(); row++) {
        boolean isValid = table.isValid(c, row);
        assertThat(found.isValid(c, first + row)).as("%d, %d", c, row).isEqualTo(isValid);
        if (isValid) {
          assertThat(found.value(c, first + row))
              .as("%d, %d", c, row)
              .isEqualTo(table.value(c, row));
        }
      }
    }
  }

  /** Rows that end within bytes and words, in one launch and in many. */
  @ParameterizedTest
  @CsvSource({"1, 1000", "2, 1", "3, 2", "4, 7"})
  void everyKindOfColumn(long seed, int atOnce) {
    fill(seed, 20, 2 * ColumnKind.values().length, 1, 7, 0, 8, 31, 33, 32, 0, 0, 1, 100, 1, 2, 3);
    assertTogether(atOnce);
  }

  @ParameterizedTest
  @ValueSource(ints = {300, 64})
  void veryManyTinyTables(int atOnce) {
    int[] rows = new Random(5).ints(300, 0, 4).toArray();
    fill(6, 9, ColumnKind.values().length, rows);
    assertTogether(atOnce);
  }

  @Test
  void tablesOfManyChunks() {
    fill(7, 40, ColumnKind.values().length, 5000, 3, 4097, 1, 4096);
    assertTogether(2);
  }

  @Test
  void oneHugeStringAmongSmallOnes() {
    List<TableColumn> columns =
        List.of(TableColumn.of(ColumnKind.STRING, true), TableColumn.of(ColumnKind.BYTE, false));
    tables.add(new RandomTable(1, 3, 5).fill(gpu.pinned, columns, 3));
    tables.add(new RandomTable(9, 0, 5_000_000).fill(gpu.pinned, columns, 1));
    tables.add(new RandomTable(2, 3, 5).fill(gpu.pinned, columns, 33));
    assertThat(tables.get(1).layout().stringBytes(0)).isGreaterThan(1_000_000);
    assertTogether(1);
    assertTogether(3);
  }

  @Test
  void manyColumns() {
    fill(11, 5, 300, 10, 0, 23);
    assertTogether(3);
  }

  @Test
  void oneTableIsThatTable() {
    fill(12, 5, 20, 77);
    assertTogether(1);
  }

  @Test
  void layoutsThatDoNotMatch() {
    TableColumn strings = TableColumn.of(ColumnKind.STRING, false);
    TableLayout large = TableLayout.of(List.of(strings), 1, Integer.MAX_VALUE);
    assertThatThrownBy(() -> TableConcatenator.layout(List.of(large, large)))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("bytes of strings in column 0");
    TableColumn one = TableColumn.tensors(TensorType.of(DataType.INT8, 2), true);
    TableColumn two = TableColumn.tensors(TensorType.of(DataType.INT8, 1, 2), true);
    List<TableLayout> differ =
        List.of(TableLayout.fixed(List.of(one), 1), TableLayout.fixed(List.of(two), 1));
    assertThatThrownBy(() -> TableConcatenator.layout(differ))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("cannot form one table");
    TableLayout many =
        TableLayout.fixed(List.of(TableColumn.of(ColumnKind.BYTE, false)), TableLayout.MAX_ROWS);
    assertThatThrownBy(() -> TableConcatenator.layout(List.of(many, many)))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("rows");
    assertThatThrownBy(
            () -> concatenator.start(gpu.lane, List.of(TableLayout.fixed(List.of(strings), 0))))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("there are no rows");
  }

  @Test
  void unannouncedTableIsRefused() {
    fill(13, 5, 5, 4, 5);
    try (Concatenation made = concatenator.start(gpu.lane, layouts());
        DeviceTable second = tables.get(1).upload(gpu.lane, gpu.memory)) {
      assertThatThrownBy(() -> made.add(second))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("table 0 is 5 rows");
      assertThatThrownBy(made::finish)
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("0 of 2 tables were concatenated");
    }
  }

  @Test
  void aFullDeviceKeepsNoMemory() {
    fill(14, 5, 20, 1000, 1000);
    long pinned = gpu.pinned.takenBytes();
    try (CudaMemory all = gpu.memory.take(gpu.memory.budgetBytes())) {
      assertThat(all.bytes()).isPositive();
      assertThatThrownBy(() -> concatenator.start(gpu.lane, layouts()))
          .isInstanceOf(NoRoomException.class);
    }
    assertThat(gpu.pinned.takenBytes()).isEqualTo(pinned);
    assertTogether(1);
  }

  /** Enqueued work ends before its memory is freed. */
  @Test
  void abandonedConcatenations() {
    fill(15, 5, 20, 1000, 1000);
    try (Concatenation made = concatenator.start(gpu.lane, layouts());
        DeviceTable first = tables.get(0).upload(gpu.lane, gpu.memory)) {
      made.add(first);
      assertThat(made.enqueue()).isNotNull();
    }
    gpu.lane.drain(TableGpu.deadline());
    assertThat(gpu.memory.takenBytes()).isZero();
  }
}
