package io.weft.shuffle.device;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.weft.device.HostEvent;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.CudaMemoryPool;
import io.weft.device.cuda.CudaMemoryPool.Kind;
import io.weft.memory.Memory;
import io.weft.testgpus.UsesGpu;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.function.IntUnaryOperator;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

@UsesGpu
class DevicePartitionerTest {
  private TableGpu gpu;
  private DevicePartitioner partitioner;

  @BeforeEach
  void open() {
    gpu = new TableGpu();
    gpu.soil();
    partitioner = DevicePartitioner.open(gpu.memory, gpu.pinned);
  }

  @AfterEach
  void nothingIsLeaked() {
    gpu.lane.drain(TableGpu.deadline());
    partitioner.close();
    gpu.close();
  }

  private static int[] keysOf(List<TableColumn> columns) {
    return IntStream.range(0, columns.size()).filter(c -> columns.get(c).kind().isKey()).toArray();
  }

  /** Rows of 0 to 9000, more partitions than rows, partition numbers with more than one digit. */
  @ParameterizedTest
  @CsvSource({
    "1, 0, 0, 1",
    "2, 1, 0, 1",
    "3, 1, 10, 7",
    "4, 31, 3, 32",
    "5, 32, 10, 5",
    "6, 100, 3, 1",
    "7, 100, 2, 1000",
    "8, 1000, 0, 255",
    "9, 1000, 5, 256",
    "10, 1000, 1, 257",
    "11, 4096, 3, 17",
    "12, 4097, 3, 200",
    "13, 9000, 1, 2",
    "14, 500, 9, 70000",
    "15, 0, 0, 300"
  })
  void rowsGoToTheSamePartitionsAsInSpark(long seed, int rows, int nulls, int partitions) {
    RandomTable random = new RandomTable(seed, nulls, 20);
    List<TableColumn> columns = random.columns(ColumnKind.values().length);
    try (HostTable table = random.fill(gpu.pinned, columns, rows)) {
      int[] keys = keysOf(columns);
      try (DeviceTable there = table.upload(gpu.lane, gpu.memory);
          PendingPartitions pending = partitioner.byHash(gpu.lane, there, keys, partitions);
          PartitionedTable made = pending.pack(TableGpu.deadline())) {
        assertPartitions(
            table, made, partitions, row -> SparkHash.partition(table, keys, row, partitions));
      }
    }
  }

  /** Each key and each kept column is of any kind, in another order than in the table. */
  @ParameterizedTest
  @CsvSource({"1, 0, 2", "2, 1, 3", "3, 5000, 7", "4, 300, 1000"})
  void keysNeedNotBeKept(long seed, int rows, int partitions) {
    RandomTable random = new RandomTable(seed, 3, 20);
    List<TableColumn> columns = random.columns(ColumnKind.values().length);
    int[] keys = keysOf(columns);
    int[] kept = IntStream.range(0, columns.size()).map(c -> columns.size() - 1 - c).toArray();
    for (int[] some : List.of(kept, new int[] {kept[3]}, new int[] {0, 2, 0}, new int[0])) {
      try (HostTable table = random.fill(gpu.pinned, columns, rows);
          DeviceTable there = table.upload(gpu.lane, gpu.memory);
          PendingPartitions pending = partitioner.byHash(gpu.lane, there, keys, some, partitions);
          PartitionedTable made = pending.pack(TableGpu.deadline())) {
        assertPartitions(
            new PartitionCheck(table, some),
            made,
            partitions,
            row -> SparkHash.partition(table, keys, row, partitions),
            IntStream.range(0, rows).toArray());
      }
    }
  }

  private void assertPartitions(
      HostTable table, PartitionedTable made, int partitions, IntUnaryOperator partitionOf) {
    int[] order = IntStream.range(0, table.layout().rows()).toArray();
    assertPartitions(table, made, partitions, partitionOf, order);
  }

  private void assertPartitions(
      HostTable table,
      PartitionedTable made,
      int partitions,
      IntUnaryOperator partitionOf,
      int[] order) {
    assertPartitions(new PartitionCheck(table), made, partitions, partitionOf, order);
  }

  private void assertPartitions(
      PartitionCheck check,
      PartitionedTable made,
      int partitions,
      IntUnaryOperator partitionOf,
      int[] order) {
    assertThat(made.partitions()).isEqualTo(partitions);
    int[] partitionOfRow = IntStream.range(0, order.length).map(partitionOf).toArray();
    for (int p = 0; p < partitions; p++) {
      int partition = p;
      int[] rows = IntStream.of(order).filter(row -> partitionOfRow[row] == partition).toArray();
      if (rows.length == 0 && partitions > 1000 && p % 1000 != 0) {
        assertThat(made.layout(p).rows()).isZero();
        continue;
      }
      try (HostTable part = HostTable.download(gpu.lane, made.table(p), gpu.pinned)) {
        part.ready().await(TableGpu.deadline());
        check.assertRows(part, rows);
      }
    }
  }

  /** More columns, and more key columns, than one launch takes. */
  @Test
  void manyColumnsTakeSeveralLaunches() {
    RandomTable random = new RandomTable(1, 3, 5);
    List<TableColumn> columns = random.columns(150);
    try (HostTable table = random.fill(gpu.pinned, columns, 300);
        DeviceTable there = table.upload(gpu.lane, gpu.memory);
        PendingPartitions pending = partitioner.byHash(gpu.lane, there, keysOf(columns), 11);
        PartitionedTable made = pending.pack(TableGpu.deadline())) {
      assertPartitions(
          table, made, 11, row -> SparkHash.partition(table, keysOf(columns), row, 11));
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 3, 256, 5000})
  void rowsGoToTheGivenPartitions(int partitions) {
    RandomTable random = new RandomTable(partitions, 2, 9);
    int rows = 5000;
    int[] ids = new Random(7).ints(rows, 0, partitions).toArray();
    try (HostTable table = random.fill(gpu.pinned, random.columns(6), rows);
        DeviceTable there = table.upload(gpu.lane, gpu.memory);
        CudaMemory given = gpu.ints(ids);
        PendingPartitions pending = partitioner.byIds(gpu.lane, there, given, partitions);
        PartitionedTable made = pending.pack(TableGpu.deadline())) {
      assertPartitions(table, made, partitions, row -> ids[row]);
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 5000})
  void rowsOfAPartitionHaveTheGivenOrder(int partitions) {
    RandomTable random = new RandomTable(partitions, 2, 9);
    int rows = 5000;
    int[] ids = new Random(7).ints(rows, 0, partitions).toArray();
    List<Integer> shuffled = new ArrayList<>(IntStream.range(0, rows).boxed().toList());
    Collections.shuffle(shuffled, new Random(8));
    int[] order = shuffled.stream().mapToInt(Integer::intValue).toArray();
    IntStream numbers =
        IntStream.concat(
            IntStream.concat(IntStream.of(ids), IntStream.of(order)),
            IntStream.of(order).map(row -> ids[row]));
    try (HostTable table = random.fill(gpu.pinned, random.columns(6), rows);
        DeviceTable there = table.upload(gpu.lane, gpu.memory);
        CudaMemory given = gpu.ints(numbers.toArray());
        PendingPartitions pending = partitioner.byOrder(gpu.lane, there, given, partitions);
        PartitionedTable made = pending.pack(TableGpu.deadline())) {
      assertPartitions(table, made, partitions, row -> ids[row], order);
    }
  }

  /** Full and partial tiles, partitions without rows, one and several passes of the sort. */
  @ParameterizedTest
  @CsvSource({
    "0, 200, 1",
    "4096, 200, 1",
    "8192, 200, 200",
    "12289, 256, 7",
    "20000, 255, 255",
    "20000, 300, 9",
    "20000, 257, 257"
  })
  void tilesAreWhole(int rows, int partitions, int used) {
    List<TableColumn> columns = new RandomTable(rows, 2, 9).columns(70);
    Random random = new Random(partitions);
    int[] some = random.ints(used, 0, partitions).toArray();
    int[] ids = random.ints(rows, 0, used).map(i -> used == partitions ? i : some[i]).toArray();
    try (HostTable table = new RandomTable(used, 2, 9).fill(gpu.pinned, columns, rows);
        DeviceTable there = table.upload(gpu.lane, gpu.memory);
        CudaMemory given = gpu.ints(ids);
        PendingPartitions pending = partitioner.byIds(gpu.lane, there, given, partitions);
        PartitionedTable made = pending.pack(TableGpu.deadline())) {
      assertPartitions(table, made, partitions, row -> ids[row]);
    }
  }

  /** Several warps copy it, and it does not start at a word. */
  @Test
  void oneHugeRowIsCopiedWhole() {
    RandomTable random = new RandomTable(5, 0, 3_000_000);
    List<TableColumn> columns =
        List.of(TableColumn.of(ColumnKind.BYTE, false), TableColumn.of(ColumnKind.STRING, true));
    try (HostTable table = random.fill(gpu.pinned, columns, 3);
        DeviceTable there = table.upload(gpu.lane, gpu.memory);
        CudaMemory given = gpu.ints(1, 0, 1);
        PendingPartitions pending = partitioner.byIds(gpu.lane, there, given, 2);
        PartitionedTable made = pending.pack(TableGpu.deadline())) {
      assertPartitions(table, made, 2, row -> row == 1 ? 0 : 1);
    }
  }

  /** The input may be closed at once; the double would detect a use of freed memory. */
  @Test
  void tableIsKeptUntilItIsPartitioned() {
    RandomTable random = new RandomTable(6, 2, 9);
    HostTable table = random.fill(gpu.pinned, random.columns(14), 100);
    DeviceTable there = table.upload(gpu.lane, gpu.memory);
    CudaMemory given = gpu.ints(new int[100]);
    try (PendingPartitions pending = partitioner.byIds(gpu.lane, there, given, 2)) {
      there.close();
      given.close();
      try (PartitionedTable made = pending.pack(TableGpu.deadline())) {
        assertPartitions(table, made, 2, row -> 0);
      }
      assertThatThrownBy(() -> pending.pack(TableGpu.deadline()))
          .hasMessageContaining("was packed, or closed, before");
    }
    table.close();
    await().until(() -> gpu.memory.takenBytes() == 0 && gpu.pinned.takenBytes() == 0);
  }

  @Test
  void noMemoryIsKeptIfNothingIsPacked() {
    RandomTable random = new RandomTable(6, 2, 9);
    try (HostTable table = random.fill(gpu.pinned, random.columns(14), 100);
        DeviceTable there = table.upload(gpu.lane, gpu.memory)) {
      partitioner.byHash(gpu.lane, there, new int[0], 2).close();
    }
    await().until(() -> gpu.memory.takenBytes() == 0 && gpu.pinned.takenBytes() == 0);
  }

  @ParameterizedTest
  @ValueSource(ints = {-1, 3, 259, Integer.MIN_VALUE})
  void partitionsOutOfRangeAreRefused(int wrong) {
    RandomTable random = new RandomTable(8, 2, 9);
    try (HostTable table = random.fill(gpu.pinned, random.columns(14), 4);
        DeviceTable there = table.upload(gpu.lane, gpu.memory);
        CudaMemory given = gpu.ints(0, 1, wrong, 2);
        PendingPartitions pending = partitioner.byIds(gpu.lane, there, given, 3)) {
      assertThatThrownBy(() -> pending.pack(TableGpu.deadline()))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("in a partition that is not 0 to 2");
    }
  }

  /** A table from another machine may have such offsets: nothing is read beyond its bytes. */
  @ParameterizedTest
  @CsvSource({"0, -1", "1, 1000000000", "2, 0", "4, 2147483647", "4, 1"})
  void brokenOffsetsAreRefused(int index, int wrong) {
    List<TableColumn> columns = List.of(TableColumn.of(ColumnKind.STRING, false));
    try (HostTable table = HostTable.allocate(gpu.pinned, TableLayout.of(columns, 4, 80))) {
      long offsets = table.address() + table.layout().offsets(0);
      for (int i = 0; i <= 4; i++) {
        Memory.putInt(offsets + 4 * i, i == index ? wrong : 20 * i);
      }
      try (DeviceTable there = table.upload(gpu.lane, gpu.memory);
          PendingPartitions pending = partitioner.byHash(gpu.lane, there, new int[] {0}, 3)) {
        assertThatThrownBy(() -> pending.pack(TableGpu.deadline()))
            .isInstanceOf(IllegalStateException.class)
            .hasMessageContaining("the offsets of strings of 4 rows of [string] go backwards");
      }
    }
  }

  /** The bytes of a null are not read. */
  @Test
  void offsetsOfNullsAreIgnored() {
    List<TableColumn> columns = List.of(TableColumn.of(ColumnKind.STRING, true));
    try (HostTable table = HostTable.allocate(gpu.pinned, TableLayout.of(columns, 3, 20))) {
      TableLayout layout = table.layout();
      Memory.putLong(table.address() + layout.validity(0), 0b101);
      int[] offsets = {0, 10, 10, 20};
      for (int i = 0; i < offsets.length; i++) {
        Memory.putInt(table.address() + layout.offsets(0) + 4L * i, offsets[i]);
      }
      Memory.setMemory(table.address() + layout.data(0), 20, (byte) 'a');
      try (DeviceTable there = table.upload(gpu.lane, gpu.memory)) {
        there.ready().await(TableGpu.deadline());
        assertLengths(there, 10, 10);
      }
      Memory.putLong(table.address() + layout.validity(0), 0b001);
      Memory.putInt(table.address() + layout.offsets(0) + 8L, -7);
      try (DeviceTable there = table.upload(gpu.lane, gpu.memory)) {
        assertLengths(there, 10, 0);
      }
    }
  }

  private void assertLengths(DeviceTable table, int first, int others) {
    try (CudaMemory given = gpu.ints(0, 1, 1);
        PendingPartitions pending = partitioner.byIds(gpu.lane, table, given, 2);
        PartitionedTable made = pending.pack(TableGpu.deadline())) {
      made.ready().await(TableGpu.deadline());
      assertThat(made.layout(0).stringBytes(0)).isEqualTo(first);
      assertThat(made.layout(1).stringBytes(0)).isEqualTo(others);
    }
  }

  /** The copy skips rows without bytes: none, a few or many. */
  @ParameterizedTest
  @ValueSource(ints = {2, 9, 10, 400})
  void rowsWithoutBytesBetweenOthers(int distance) {
    List<TableColumn> columns = List.of(TableColumn.of(ColumnKind.STRING, false));
    int rows = 3000;
    int length = 37;
    int bytes = (rows + distance - 1) / distance * length;
    try (HostTable table = HostTable.allocate(gpu.pinned, TableLayout.of(columns, rows, bytes))) {
      TableLayout layout = table.layout();
      for (int row = 0; row <= rows; row++) {
        int before = (row + distance - 1) / distance * length;
        Memory.putInt(table.address() + layout.offsets(0) + 4L * row, before);
      }
      for (int i = 0; i < bytes; i++) {
        Memory.putByte(table.address() + layout.data(0) + i, (byte) (i * 31 >> 2));
      }
      int[] ids = new Random(3).ints(rows, 0, 3).toArray();
      try (DeviceTable there = table.upload(gpu.lane, gpu.memory);
          CudaMemory given = gpu.ints(ids);
          PendingPartitions pending = partitioner.byIds(gpu.lane, there, given, 3);
          PartitionedTable made = pending.pack(TableGpu.deadline())) {
        assertPartitions(table, made, 3, row -> ids[row]);
      }
    }
  }

  /** Work that waits on a lane finds the kernels closed and reports it. */
  @Test
  void closeBeforeCountingPacksNothing() {
    List<TableColumn> columns = List.of(TableColumn.of(ColumnKind.LONG, false));
    DevicePartitioner other = DevicePartitioner.open(gpu.memory, gpu.pinned);
    HostEvent gate = new HostEvent("for the test");
    try (HostTable table = new RandomTable(1, 0, 0).fill(gpu.pinned, columns, 100);
        DeviceTable there = table.upload(gpu.lane, gpu.memory);
        PendingPartitions pending = other.byHash(gpu.lane, there, new int[] {0}, 2, gate)) {
      other.close();
      gate.complete();
      assertThatThrownBy(() -> pending.pack(TableGpu.deadline()))
          .hasStackTraceContaining("were closed");
    }
  }

  /** Other users may free memory meanwhile, or be spilled. */
  @Test
  void packingThatFoundNoMemoryIsTriedAgain() {
    List<TableColumn> columns = List.of(TableColumn.of(ColumnKind.LONG, false));
    try (CudaMemoryPool small = CudaMemoryPool.open(gpu.device, Kind.DEVICE, 2 << 20);
        DevicePartitioner other = DevicePartitioner.open(small, gpu.pinned);
        HostTable table = new RandomTable(1, 0, 0).fill(gpu.pinned, columns, 20_000);
        DeviceTable there = table.upload(gpu.lane, gpu.memory);
        PendingPartitions pending = other.byHash(gpu.lane, there, new int[] {0}, 2)) {
      CudaMemory taken = small.take(1_700_000);
      assertThatThrownBy(() -> pending.pack(TableGpu.deadline()))
          .hasMessageContaining("exceed the budget");
      taken.close();
      try (PartitionedTable made = pending.pack(TableGpu.deadline())) {
        made.ready().await(TableGpu.deadline());
        assertThat(made.bytes()).isBetween(160_000L, 161_000L);
        assertThat(made.layout(0).rows() + made.layout(1).rows()).isEqualTo(20_000);
      }
    }
  }

  @Test
  void columnsThatAreNotKeysAreRefused() {
    List<TableColumn> columns = new RandomTable(1, 0, 1).columns(14);
    try (HostTable table = new RandomTable(1, 0, 1).fill(gpu.pinned, columns, 4);
        DeviceTable there = table.upload(gpu.lane, gpu.memory)) {
      int tensor =
          IntStream.range(0, 14)
              .filter(c -> columns.get(c).kind() == ColumnKind.TENSOR)
              .findFirst()
              .orElseThrow();
      for (int key : new int[] {tensor, 14, -1}) {
        assertThatThrownBy(() -> partitioner.byHash(gpu.lane, there, new int[] {key}, 3))
            .hasMessageContaining("column " + key + " of 4 rows")
            .hasMessageContaining("is not a key");
      }
      assertThatThrownBy(() -> partitioner.byHash(gpu.lane, there, new int[0], 0))
          .hasMessageContaining("0 partitions are not 1 to");
    }
  }
}
