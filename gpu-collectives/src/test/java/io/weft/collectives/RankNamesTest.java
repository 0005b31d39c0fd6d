package io.weft.collectives;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.collectives.CollectiveException.Kind;
import io.weft.collectives.CommunicatorOptions.RankNames;
import java.util.List;
import org.junit.jupiter.api.Test;

class RankNamesTest {
  private final RankNames names = rank -> rank == 1 ? "task 7 on executor 2 at host-a" : "";

  @Test
  void theRanksAtFaultGetTheirNames() {
    CollectiveException failure =
        new CollectiveException(Kind.DEAD, List.of(0, 1), "ranks 0, 1 are dead");
    CollectiveException explained = names.explain(failure);
    assertThat(explained)
        .hasMessage("ranks 0, 1 are dead (rank 1 is task 7 on executor 2 at host-a)");
    assertThat(explained.kind()).isEqualTo(Kind.DEAD);
    assertThat(explained.ranks()).containsExactly(0, 1);
    assertThat(explained.getStackTrace()).isEqualTo(failure.getStackTrace());
  }

  @Test
  void failureStaysUnchangedWithoutANameToAdd() {
    CollectiveException once =
        names.explain(new CollectiveException(Kind.DEAD, List.of(1), "rank 1 is dead"));
    assertThat(names.explain(once)).isSameAs(once);
    CollectiveException noRank = new CollectiveException(Kind.IO, List.of(), "no space left");
    assertThat(names.explain(noRank)).isSameAs(noRank);
  }
}
