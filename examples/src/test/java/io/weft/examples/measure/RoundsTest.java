package io.weft.examples.measure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class RoundsTest {
  @Test
  void threeSidesTakeAllOrdersInSixRounds() {
    List<String> sides = List.of("a", "b", "c");
    List<List<String>> orders =
        IntStream.range(0, 6).mapToObj(round -> Rounds.order(sides, round)).toList();
    assertThat(orders).doesNotHaveDuplicates();
    assertThat(orders.get(0)).isEqualTo(sides);
    assertThat(Rounds.order(sides, -1)).containsExactlyInAnyOrderElementsOf(sides);
  }

  @Test
  void eachOfTwoSidesBeginsInEverySecondRound() {
    assertThat(IntStream.range(0, 4).mapToObj(round -> Rounds.order(List.of("a", "b"), round)))
        .containsExactly(
            List.of("a", "b"), List.of("b", "a"), List.of("b", "a"), List.of("a", "b"));
  }

  @Test
  void warmUpsDoNotCount() throws Exception {
    List<String> order = new ArrayList<>();
    List<Rounds.SideFigures> figures =
        new Rounds(1, 2)
            .measure(
                List.of(
                    new Rounds.Contestant("a", () -> run(order, "a")),
                    new Rounds.Contestant("b", () -> run(order, "b"))));
    assertThat(order).containsExactly("a", "b", "a", "b", "b", "a");
    assertThat(figures).extracting(Rounds.SideFigures::side).containsExactly("a", "b");
    assertThat(figures.get(0).seconds().values()).containsExactly(3.0, 6.0);
  }

  private static Rounds.Cost run(List<String> order, String side) {
    order.add(side);
    return new Rounds.Cost(order.size(), 1);
  }

  @Test
  void roundsEndEarlyWhenToldTo() throws Exception {
    List<Integer> runs = new ArrayList<>();
    new Rounds(0, 9).runWhile(List.of("a"), run -> run < 2, (side, run) -> runs.add(run));
    assertThat(runs).containsExactly(0, 1);
  }

  @Test
  void atLeastOneRunIsNeeded() {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> new Rounds(0, 0))
        .withMessage("at least one run is needed, not 0");
    assertThatIllegalArgumentException().isThrownBy(() -> new Rounds(-1, 1));
  }
}
