package io.weft.spark.gpu;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.CudaMemoryPool;
import io.weft.shuffle.device.ColumnKind;
import io.weft.shuffle.device.DeviceFetchException;
import io.weft.shuffle.device.TableColumn;
import io.weft.shuffle.device.TableLayout;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Small tables of many map tasks, which are combined into few, even if the device is full. */
class TableCombinerTest {
  private static final long MIB = 1L << 20;

  private static ManyBlocks blocks;

  @BeforeAll
  static void start() {
    blocks = new ManyBlocks();
  }

  @AfterAll
  static void nothingIsLeftBehind() {
    if (blocks != null) {
      blocks.close();
    }
  }

  @AfterEach
  void onlyBlocksAreLeft() {
    ManyBlocks.assertOnlyBlocksAreLeft();
  }

  @Test
  void manyBecomeOne() throws DeviceFetchException {
    ManyBlocks.Read onHost = blocks.read(null);
    ManyBlocks.Read read = blocks.read(ManyBlocks.device());
    assertThat(read.rows())
        .isEqualTo(onHost.rows())
        .hasSizeBetween(ManyBlocks.ROWS / 3, ManyBlocks.ROWS);
    assertThat(read.tables()).isEqualTo(1);
    assertThat(read.ofBlocks()).isEqualTo(ManyBlocks.MAPS);
  }

  @Test
  void blocksThatWereSpilledAreBroughtBackOneByOne() throws DeviceFetchException {
    ManyBlocks.Read onHost = blocks.read(null);
    ManyBlocks.spillAll();
    ManyBlocks.Read read = blocks.read(ManyBlocks.device());
    assertThat(read.rows()).isEqualTo(onHost.rows());
    assertThat(read.tables()).isEqualTo(1);
  }

  /** There is room for one block at a time, but not for a combined table. */
  @Test
  void withoutRoomTablesAreReadAsTheyAre() throws DeviceFetchException {
    ManyBlocks.Read onHost = blocks.read(null);
    CudaMemoryPool memory = ManyBlocks.memory();
    ManyBlocks.spillAll();
    List<CudaMemory> taken = new ArrayList<>();
    try {
      taken.add(memory.take(memory.budgetBytes() - MIB));
      taken.add(memory.take(MIB - (64 << 10)));
      ManyBlocks.Read read = blocks.read(ManyBlocks.device());
      assertThat(read.rows()).isEqualTo(onHost.rows());
      assertThat(read.tables()).isEqualTo(ManyBlocks.MAPS);
    } finally {
      taken.forEach(CudaMemory::close);
    }
    assertThat(blocks.read(ManyBlocks.device()).tables()).isEqualTo(1);
  }

  /** As many blocks as one fetch from another executor brings. */
  @Test
  void tablesOfAnotherExecutorAreCombinedAndFreed() throws DeviceFetchException {
    ManyBlocks.Read onHost = blocks.read(null);
    ManyBlocks.Read read = blocks.read(ManyBlocks.device(), false, blocks.shuffle, () -> {});
    assertThat(read.rows()).isEqualTo(onHost.rows());
    assertThat(read.tables()).isEqualTo(1);
    assertThat(read.ofBlocks()).isEqualTo(ManyBlocks.MAPS);
    ManyBlocks.spillAll(); // None is leased.
  }

  /** A full device normally holds blocks; none is spilled for a combined copy of others. */
  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void onAFullDeviceNothingIsSpilled(boolean own) throws DeviceFetchException {
    ManyBlocks.Read onHost = blocks.read(null);
    assertThat(blocks.read(ManyBlocks.device()).tables()).isEqualTo(1); // All are there.
    long spilled = ManyBlocks.device().tiers().spilledBytes();
    List<CudaMemory> taken = ManyBlocks.takeAll(ManyBlocks.memory());
    try {
      ManyBlocks.Read read = blocks.read(ManyBlocks.device(), own, blocks.shuffle, () -> {});
      assertThat(read.rows()).isEqualTo(onHost.rows());
      assertThat(read.tables()).isEqualTo(ManyBlocks.MAPS);
      assertThat(ManyBlocks.device().tiers().spilledBytes()).isEqualTo(spilled);
    } finally {
      taken.forEach(CudaMemory::close);
    }
  }

  @Test
  void withoutPinnedMemoryNothingIsSpilled() throws DeviceFetchException {
    assertThat(blocks.read(ManyBlocks.device()).tables()).isEqualTo(1);
    long spilled = ManyBlocks.device().tiers().spilledBytes();
    List<CudaMemory> taken = ManyBlocks.takeAll(ManyBlocks.device().gpu().pinned());
    int tables = 0;
    try (TableFetch fetch =
        TableFetch.of(
                ManyBlocks.device(),
                true,
                ManyBlocks.OWNER,
                blocks.blocks(),
                () -> {},
                new FetchAhead(0))
            .get(0)) {
      for (; fetch.hasNext(); tables++) {
        fetch.next().close();
      }
    } finally {
      taken.forEach(CudaMemory::close);
    }
    assertThat(tables).isEqualTo(ManyBlocks.MAPS);
    assertThat(ManyBlocks.device().tiers().spilledBytes()).isEqualTo(spilled);
  }

  private static TableLayout bytes(long bytes) {
    return rows(ColumnKind.LONG, bytes / Long.BYTES);
  }

  private static TableLayout rows(ColumnKind kind, long rows) {
    return TableLayout.fixed(List.of(TableColumn.of(kind, false)), (int) rows);
  }

  @Test
  void largeTablesStayAsTheyAre() {
    TableCombiner small = ManyBlocks.device().smallTables();
    long unit = ManyBlocks.device().unitBytes();
    assertThat(unit).isEqualTo(2 * MIB);
    TableLayout large = bytes(unit / 2 + 8);
    TableLayout tiny = bytes(100);
    assertThat(small.together(List.of(large, tiny).iterator())).isEqualTo(1);
    assertThat(small.together(List.of(tiny, large).iterator())).isEqualTo(1);
    assertThat(small.together(List.of(tiny, tiny, large).iterator())).isEqualTo(2);
    TableLayout half = bytes(unit / 2);
    assertThat(small.together(List.of(half, half, tiny).iterator())).isEqualTo(2);
    assertThat(small.together(List.of(tiny).iterator())).isEqualTo(1);
    TableLayout narrow =
        rows(ColumnKind.BYTE, unit / 30); // Splitting the rows takes more memory than this.
    assertThat(small.together(Collections.nCopies(30, narrow).iterator())).isEqualTo(5);
  }
}
