package io.weft.collectives.bootstrap;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveException.Kind;
import io.weft.collectives.contract.RankGang;
import io.weft.collectives.local.LocalCommunicator;
import io.weft.device.Deadline;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;

class CommunicatorBootstrapTest {
  private static Deadline soon() {
    return Deadline.after(Duration.ofSeconds(60));
  }

  private static RankGang gang(int nranks) {
    return RankGang.open(LocalCommunicator::create, nranks, Duration.ofSeconds(60));
  }

  @Test
  void messagesOfAllLengthsComeInTheOrderOfRanks() {
    try (RankGang gang = gang(4)) {
      gang.run(
          communicator -> {
            try (CommunicatorBootstrap bootstrap = new CommunicatorBootstrap(communicator)) {
              for (int round = 0; round < 3; round++) {
                byte[] mine = new byte[communicator.rank() * round * 1000];
                Arrays.fill(mine, (byte) (communicator.rank() + 1));
                List<byte[]> all = bootstrap.exchange("round" + round, mine, soon());
                for (int rank = 0; rank < 4; rank++) {
                  byte[] expected = new byte[rank * round * 1000];
                  Arrays.fill(expected, (byte) (rank + 1));
                  assertThat(all.get(rank)).isEqualTo(expected);
                }
              }
            }
          });
    }
  }

  @Test
  void ranksInDifferentRoundsAreNamed() {
    try (RankGang gang = gang(2)) {
      List<CollectiveException> failures =
          gang.ask(
              communicator ->
                  catchThrowableOfType(
                      CollectiveException.class,
                      () ->
                          new CommunicatorBootstrap(communicator)
                              .exchange("round" + communicator.rank(), new byte[1], soon())));
      assertThat(failures)
          .allSatisfy(failure -> assertThat(failure.kind()).isEqualTo(Kind.MISMATCH))
          .allSatisfy(failure -> assertThat(failure.ranks()).containsExactly(0, 1));
    }
  }
}
