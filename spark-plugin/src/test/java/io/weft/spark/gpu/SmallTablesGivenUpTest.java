package io.weft.spark.gpu;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.shuffle.device.Concatenation;
import io.weft.shuffle.device.DeviceFetchException;
import io.weft.shuffle.device.DeviceSlice.DeviceRows;
import io.weft.shuffle.device.TableLayout;
import io.weft.spark.DoubleGpus;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.spark.TaskKilledException;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** Small tables that are not combined, because of an event during the attempt. */
class SmallTablesGivenUpTest {
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

  /**
   * There is room for the result, and some tables are copied, but there is no room for the next.
   */
  @Test
  void tablesAreReadOneByOneAfterAPartialCopy() throws DeviceFetchException {
    ManyBlocks.Read onHost = blocks.read(null);
    List<AutoCloseable> held = new ArrayList<>();
    Runnable starve =
        () -> {
          held.add(blocks.slice(ManyBlocks.HALFWAY - 2).leaseIfThere().orElseThrow());
          assertThat(ManyBlocks.device().tiers().spill(Long.MAX_VALUE)).isPositive();
          held.addAll(ManyBlocks.takeAll(ManyBlocks.memory()));
        };
    Runnable relent = () -> held.forEach(SmallTablesGivenUpTest::close);
    ManyBlocks.Read read =
        blocks.read(
            ManyBlocks.device(),
            true,
            blocks.shuffle,
            ManyBlocks.at(ManyBlocks.HALFWAY, starve, relent));
    assertThat(held).hasSizeGreaterThan(1);
    assertThat(read.rows()).isEqualTo(onHost.rows());
    assertThat(read.tables()).isEqualTo(ManyBlocks.MAPS);
  }

  private static void close(AutoCloseable each) {
    try {
      each.close();
    } catch (Exception e) {
      throw new AssertionError(e);
    }
  }

  /** A load that times out does not prevent reading the tables one by one. */
  @Test
  void aLoadThatTimesOutIsGivenUp() throws DeviceFetchException {
    ManyBlocks.Read onHost = blocks.read(null);
    ManyBlocks.spillAll();
    Runnable stop =
        () -> {
          DoubleGpus.controls().cudaDoublePause(1);
          Thread.currentThread().interrupt(); // Instead of the deadline.
        };
    AtomicBoolean wasInterrupted = new AtomicBoolean();
    Runnable goOn =
        () -> {
          wasInterrupted.set(Thread.interrupted());
          DoubleGpus.controls().cudaDoublePause(0);
        };
    ManyBlocks.Read read =
        blocks.read(ManyBlocks.device(), true, blocks.shuffle, ManyBlocks.at(1, stop, goOn));
    assertThat(wasInterrupted).isTrue();
    assertThat(read.rows()).isEqualTo(onHost.rows());
    assertThat(read.tables()).isEqualTo(ManyBlocks.MAPS);
  }

  @Test
  void aShuffleRemovedMeanwhileIsTheReason() {
    Dataset<Row> other = blocks.exchanged();
    int shuffle = blocks.newestShuffle();
    Runnable remove = () -> ManyBlocks.device().catalog().removeShuffle(shuffle);
    assertThatThrownBy(
            () ->
                blocks.read(
                    ManyBlocks.device(),
                    true,
                    shuffle,
                    ManyBlocks.at(ManyBlocks.HALFWAY, remove, () -> {})))
        .isInstanceOf(DeviceFetchException.class)
        .hasMessageContaining("is not on the GPU of executor " + ManyBlocks.OWNER + " (any more)");
    assertThat(other).isNotNull();
  }

  @Test
  void aTaskKilledMeanwhileLeavesNoMemory() {
    Runnable kill =
        () -> {
          throw new TaskKilledException("a test");
        };
    assertThatThrownBy(
            () ->
                blocks.read(
                    ManyBlocks.device(),
                    true,
                    blocks.shuffle,
                    ManyBlocks.at(ManyBlocks.HALFWAY, kill, kill)))
        .isInstanceOf(TaskKilledException.class);
  }

  /** Happens when the executor ends. */
  @Test
  void aClosedLaneIsReported() throws DeviceFetchException {
    TableCombiner closed =
        TableCombiner.open(
            ManyBlocks.device().gpu(),
            ManyBlocks.memory(),
            ManyBlocks.device().unitBytes(),
            Duration.ofSeconds(20));
    List<TableLayout> layouts = List.of(blocks.slice(0).layout());
    try (Concatenation made = closed.start(layouts).orElseThrow();
        DeviceRows rows = blocks.slice(0).lease()) {
      closed.close();
      made.add(FetchedTable.lent(rows));
      assertThatThrownBy(made::finish).isInstanceOf(IllegalStateException.class);
    }
  }
}
