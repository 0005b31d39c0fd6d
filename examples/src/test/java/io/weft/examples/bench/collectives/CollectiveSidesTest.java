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
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Runs both sides briefly with few processes: every operation, with all elements compared. */
class CollectiveSidesTest {
  private static final List<OperationKind> OPERATIONS =
      List.of(
          OperationKind.ALL_REDUCE,
          OperationKind.ALL_GATHER,
          OperationKind.REDUCE_SCATTER,
          OperationKind.ALL_TO_ALL,
          OperationKind.RAGGED_ALL_TO_ALL,
          OperationKind.BROADCAST,
          OperationKind.REDUCE);

  @TempDir private Path folder;

  @ParameterizedTest
  @CsvSource({"SHM, 2", "SHM, 3", "SYMMETRIC, 2", "SYMMETRIC, 4"})
  void weftRanksComputeRightResults(RankOptions.Kind kind, int nranks) throws Exception {
    try (CollectiveSide side =
        WeftSide.start(
            kind, nranks, folder, folder.resolve("memory"), RankPlacement.bound(nranks))) {
      checkAll(side, nranks);
      Optional<CollectiveSide.Timing> bfloat =
          side.run(
              new CollectiveCase(
                  OperationKind.ALL_REDUCE, DataType.BFLOAT16, ReduceOp.AVERAGE, 99, nranks, true),
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
        check(side, operation, 4096, 2, false);
        CollectiveCase test =
            CollectiveCase.ofSize(operation, DataType.FLOAT32, ReduceOp.SUM, 64, 2, false);
        assertThat(side.run(test, false, 120).orElseThrow().nanos()).isPositive();
      }
      check(side, OperationKind.ALL_REDUCE, 8, 2, true);
      CollectiveCase large =
          CollectiveCase.ofSize(
              OperationKind.ALL_REDUCE, DataType.FLOAT32, ReduceOp.SUM, 1 << 20, 2, false);
      assertThat(side.run(large, true, 1)).isEmpty();
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {2, 4})
  void openMpiRanksComputeRightResults(int nranks) throws Exception {
    assumeTrue(MpiSide.isInstalled(), "OpenMPI and its compiler wrapper are not installed");
    try (CollectiveSide side = MpiSide.start(nranks, folder, RankPlacement.FREE)) {
      checkAll(side, nranks);
      CollectiveCase unknown =
          new CollectiveCase(
              OperationKind.ALL_REDUCE, DataType.BFLOAT16, ReduceOp.SUM, 4, nranks, false);
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

  private static void checkAll(CollectiveSide side, int nranks) throws Exception {
    for (OperationKind operation : OPERATIONS) {
      for (long bytes : new long[] {8, 3 << 20}) {
        check(side, operation, bytes, nranks, false);
        check(side, operation, bytes, nranks, CollectiveCase.worksInPlace(operation));
      }
    }
  }

  private static void check(
      CollectiveSide side, OperationKind operation, long bytes, int nranks, boolean inPlace)
      throws Exception {
    CollectiveCase test =
        CollectiveCase.ofSize(operation, DataType.FLOAT32, ReduceOp.SUM, bytes, nranks, inPlace);
    assertThat(side.run(test, true, 1))
        .as("%s", test)
        .hasValueSatisfying(timing -> assertThat(timing.errors()).isZero());
    assertThat(side.run(test, false, 3))
        .as("%s", test)
        .hasValueSatisfying(timing -> assertThat(timing.nanos()).isPositive());
  }
}
