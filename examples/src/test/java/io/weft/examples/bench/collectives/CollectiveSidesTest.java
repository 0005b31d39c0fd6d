package io.weft.examples.bench.collectives;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.weft.collectives.DataType;
import io.weft.collectives.OperationKind;
import io.weft.collectives.ReduceOp;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Runs both sides briefly with two processes: every operation, with all elements compared. */
class CollectiveSidesTest {
  private static final List<OperationKind> OPERATIONS =
      List.of(
          OperationKind.ALL_REDUCE,
          OperationKind.ALL_GATHER,
          OperationKind.REDUCE_SCATTER,
          OperationKind.ALL_TO_ALL,
          OperationKind.BROADCAST,
          OperationKind.REDUCE);

  @TempDir private Path folder;

  @ParameterizedTest
  @EnumSource(names = {"SHM", "SYMMETRIC"})
  void weftRanksComputeRightResults(RankOptions.Kind kind) throws Exception {
    try (CollectiveSide side =
        WeftSide.start(kind, 2, folder, folder.resolve("memory"), RankPlacement.bound(2))) {
      checkAll(side);
      Optional<CollectiveSide.Timing> bfloat =
          side.run(
              new CollectiveCase(
                  OperationKind.ALL_REDUCE, DataType.BFLOAT16, ReduceOp.AVERAGE, 99, 2, true),
              true,
              1);
      assertThat(bfloat).hasValueSatisfying(timing -> assertThat(timing.errors()).isZero());
    }
  }

  @Test
  void recordedOperationsComputeRightResults() throws Exception {
    try (CollectiveSide side =
        WeftSide.start(
            RankOptions.Kind.RECORDED, 2, folder, folder.resolve("memory"), RankPlacement.FREE)) {
      for (OperationKind operation : OPERATIONS) {
        check(side, operation, 4096, false);
        CollectiveCase test =
            CollectiveCase.ofSize(operation, DataType.FLOAT32, ReduceOp.SUM, 64, 2, false);
        assertThat(side.run(test, false, 120).orElseThrow().nanos()).isPositive();
      }
      check(side, OperationKind.ALL_REDUCE, 8, true);
      CollectiveCase large =
          CollectiveCase.ofSize(
              OperationKind.ALL_REDUCE, DataType.FLOAT32, ReduceOp.SUM, 1 << 20, 2, false);
      assertThat(side.run(large, true, 1)).isEmpty();
    }
  }

  @Test
  void openMpiRanksComputeRightResults() throws Exception {
    assumeTrue(MpiSide.isInstalled(), "OpenMPI and its compiler wrapper are not installed");
    try (CollectiveSide side = MpiSide.start(2, folder, RankPlacement.FREE)) {
      checkAll(side);
      CollectiveCase unknown =
          new CollectiveCase(
              OperationKind.ALL_REDUCE, DataType.BFLOAT16, ReduceOp.SUM, 4, 2, false);
      assertThat(side.run(unknown, true, 1)).isEmpty();
    }
  }

  @Test
  void processorListsOfTheKernelAreParsed() {
    assertThat(RankPlacement.parse("0-2,5,8-9")).containsExactly(0, 1, 2, 5, 8, 9);
    assertThat(new RankPlacement(List.of(5, 8)).launcher(1)).containsExactly("taskset", "-c", "8");
    assertThat(RankPlacement.FREE.launcher(1)).isEmpty();
    assertThat(RankPlacement.FREE.mpiOptions()).containsExactly("--bind-to", "none");
  }

  private static void checkAll(CollectiveSide side) throws Exception {
    for (OperationKind operation : OPERATIONS) {
      for (long bytes : new long[] {8, 3 << 20}) {
        check(side, operation, bytes, false);
        check(side, operation, bytes, operation != OperationKind.ALL_TO_ALL);
      }
    }
  }

  private static void check(
      CollectiveSide side, OperationKind operation, long bytes, boolean inPlace) throws Exception {
    CollectiveCase test =
        CollectiveCase.ofSize(operation, DataType.FLOAT32, ReduceOp.SUM, bytes, 2, inPlace);
    assertThat(side.run(test, true, 1))
        .as("%s", test)
        .hasValueSatisfying(timing -> assertThat(timing.errors()).isZero());
    assertThat(side.run(test, false, 3))
        .as("%s", test)
        .hasValueSatisfying(timing -> assertThat(timing.nanos()).isPositive());
  }
}
