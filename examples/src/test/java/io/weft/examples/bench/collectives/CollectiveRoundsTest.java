package io.weft.examples.bench.collectives;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import io.weft.collectives.DataType;
import io.weft.collectives.OperationKind;
import io.weft.collectives.ReduceOp;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;

final class CollectiveRoundsTest {
  private static final long SHARE_NANOS = 80_000_000;
  private static final CollectiveCase CASE =
      CollectiveCase.ofSize(OperationKind.ALL_REDUCE, DataType.INT8, ReduceOp.SUM, 8, 2, false);

  /** Takes the same time for each operation, but counts its orders. */
  private static final class SteadySide implements CollectiveSide {
    private final String name;
    private final long nanosEach;
    private final List<Integer> orders = new ArrayList<>();

    /** The order that another program delays; -1 for none. */
    private int delayed = -1;

    /** The operations of the start that take ten times as long. */
    private long cold;

    private SteadySide(String name, long nanosEach) {
      this.name = name;
      this.nanosEach = nanosEach;
    }

    @Override
    public String name() {
      return name;
    }

    @Override
    public Optional<Timing> run(CollectiveCase test, boolean check, int iterations) {
      if (check) {
        return Optional.of(new Timing(0, 0, 0, "none"));
      }
      orders.add(iterations);
      long nanos = nanosEach * iterations * (orders.size() == delayed ? 100 : 1);
      if (cold > 0) {
        cold -= iterations;
        nanos *= 10;
      }
      return Optional.of(new Timing(nanos, nanos, 0, ""));
    }

    private List<Integer> last(int blocks) {
      return orders.subList(orders.size() - blocks, orders.size());
    }

    @Override
    public void close() {
      // Holds nothing.
    }
  }

  /** The side gets warm in the first measurement, which does not count. */
  @Test
  void theFirstCaseIsMeasuredAgainWhenTheSidesAreWarm() throws Exception {
    SteadySide steady = new SteadySide("a", 10_000);
    CollectiveRounds measured = new CollectiveRounds(List.of(steady), 1, SHARE_NANOS);
    CollectivesReport.CaseResult unused = measured.measure(CASE);
    int twice = steady.orders.size();
    unused = measured.measure(CASE);
    assertThat(twice).isEqualTo(2 * (steady.orders.size() - twice));
    SteadySide side = new SteadySide("a", 10_000);
    side.cold = 25_000;
    CollectivesReport.CaseResult result =
        new CollectiveRounds(List.of(side), 1, SHARE_NANOS).measure(CASE);
    assertThat(result.sides().get(0).seconds().max()).isCloseTo(10e-6, within(1e-12));
  }

  @Test
  void aSideIsTriedUntilTheCompilerIsDoneAndMeasuredInShortBlocks() throws Exception {
    SteadySide side = new SteadySide("a", 10_000);
    CollectivesReport.CaseResult result =
        new CollectiveRounds(List.of(side), 3, SHARE_NANOS).measure(CASE);
    int tried = side.orders.stream().mapToInt(Integer::intValue).sum() - 2 * 24 * 1000;
    assertThat(tried).isBetween(2 * 20_000, 2 * 30_000);
    assertThat(side.last(24)).containsOnly(1000);
    assertThat(result.sides().get(0).seconds().values()).hasSize(24);
  }

  /** The slower side has too few operations in a share for several blocks. */
  @Test
  void allSidesHaveAsManyBlocks() throws Exception {
    SteadySide fast = new SteadySide("fast", 1_000_000);
    SteadySide slow = new SteadySide("slow", 5_000_000);
    new CollectiveRounds(List.of(fast, slow), 3, SHARE_NANOS).measure(CASE);
    assertThat(fast.last(6)).containsOnly(40);
    assertThat(slow.last(6)).containsOnly(8);
  }

  @Test
  void longOperationsDoNotWaitForTheCompiler() throws Exception {
    SteadySide side = new SteadySide("a", 1_000_000);
    new CollectiveRounds(List.of(side), 3, SHARE_NANOS).measure(CASE);
    assertThat(side.orders.stream().mapToInt(Integer::intValue).sum()).isLessThan(4_000);
  }

  @Test
  void anOperationLongerThanAShareIsABlock() throws Exception {
    SteadySide side = new SteadySide("a", 500_000_000);
    new CollectiveRounds(List.of(side), 3, SHARE_NANOS).measure(CASE);
    assertThat(side.last(3)).containsOnly(1);
  }

  @Test
  void aDelayedBlockDoesNotChangeTheMedian() throws Exception {
    SteadySide steady = new SteadySide("a", 10_000);
    new CollectiveRounds(List.of(steady), 1, SHARE_NANOS).measure(CASE);
    SteadySide side = new SteadySide("a", 10_000);
    side.delayed = steady.orders.size();
    CollectivesReport.CaseResult result =
        new CollectiveRounds(List.of(side), 1, SHARE_NANOS).measure(CASE);
    assertThat(result.sides().get(0).seconds().median()).isCloseTo(10e-6, within(1e-12));
    assertThat(result.sides().get(0).seconds().max()).isCloseTo(1e-3, within(1e-9));
  }
}
