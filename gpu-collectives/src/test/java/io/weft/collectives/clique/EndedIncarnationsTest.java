package io.weft.collectives.clique;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class EndedIncarnationsTest {
  @Test
  void theLastOnesAreKept() {
    EndedIncarnations<Integer> ended = new EndedIncarnations<>();
    int all = 3 * EndedIncarnations.MAX;
    for (int i = 0; i < all; i++) {
      ended.add("executor " + i, "first", i);
    }
    int kept = 0;
    for (int i = 0; i < all; i++) {
      assertThat(ended.cause("executor " + i, "second")).isEmpty();
      kept += ended.cause("executor " + i, "first").isPresent() ? 1 : 0;
    }
    assertThat(kept).isEqualTo(EndedIncarnations.MAX);
    assertThat(ended.cause("executor " + (all - 1), "first")).hasValue(all - 1);
  }
}
