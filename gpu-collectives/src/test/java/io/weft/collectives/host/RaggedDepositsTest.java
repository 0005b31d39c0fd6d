package io.weft.collectives.host;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.weft.collectives.Algorithm;
import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveException.Kind;
import io.weft.collectives.Communicator;
import io.weft.collectives.DataType;
import io.weft.collectives.RaggedLayout;
import io.weft.collectives.contract.CommunicatorContract;
import io.weft.collectives.contract.RaggedContract;
import io.weft.collectives.contract.RankGang;
import io.weft.collectives.host.HostOptions.KernelCopy;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Ragged all-to-alls whose tables, and perhaps rows, are deposits of the entry. */
class RaggedDepositsTest {
  @TempDir Path folder;

  private RankGang gang(int nranks, boolean kernel) {
    HostOptions options =
        HostOptions.defaults()
            .withFolder(folder.resolve("shm"))
            .withKernelCopy(kernel ? KernelCopy.ALWAYS : KernelCopy.NEVER);
    return RankGang.open(new HostCommunicators(options), nranks, Duration.ofSeconds(60));
  }

  /** One rank sends more rows than a slot holds in the last rounds only. */
  @ParameterizedTest
  @CsvSource({"2, true", "2, false", "3, true", "4, false"})
  void fewRowsOfAllRanksNeedOneExchange(int nranks, boolean kernel) {
    try (RankGang gang = gang(nranks, kernel)) {
      gang.run(
          communicator -> {
            for (int round = 0; round < 20; round++) {
              int now = round;
              RaggedContract.Sizes sizes =
                  (from, to, update) -> (from * 7 + to * 3 + update + now) % 5;
              RaggedContract.exchange(communicator, DataType.INT16, 2, 3, sizes);
            }
            assertThat(calls(communicator, Algorithm.ONE_SHOT)).isEqualTo(20);
            for (int round = 0; round < 4; round++) {
              RaggedContract.Sizes sizes = (from, to, update) -> from == 1 ? 12_001 : 1;
              RaggedContract.exchange(communicator, DataType.FLOAT32, 1, 3, sizes);
            }
            Algorithm shared = nranks == 2 ? Algorithm.STAGED : Algorithm.PAIRWISE;
            Algorithm ofMany = kernel ? Algorithm.KERNEL_COPY : shared;
            assertThat(calls(communicator, ofMany)).isEqualTo(4);
          });
    }
  }

  /**
   * Rows of 2100 updates, of which a slot does not hold the tables. The runs are too short for the
   * kernel, so they are messages or, of two ranks, go through stages.
   */
  @ParameterizedTest
  @CsvSource({"2, true, STAGED", "2, false, STAGED", "3, true, KERNEL_COPY", "3, false, PAIRWISE"})
  void tablesWithoutRoomAreMessages(int nranks, boolean kernel, Algorithm ofRows) {
    try (RankGang gang = gang(nranks, kernel)) {
      gang.run(
          communicator -> {
            RaggedContract.Sizes sizes =
                (from, to, update) -> (from + to + update) % 3 * 90L * from;
            RaggedContract.exchange(communicator, DataType.INT16, 2100, 1, sizes);
            assertThat(calls(communicator, ofRows)).isEqualTo(1);
          });
    }
  }

  /** A run of 60,000 bytes is read, unless as many bytes are in runs that would be messages. */
  @ParameterizedTest
  @CsvSource({"2, KERNEL_COPY", "12, STAGED"})
  void shortRunsOfTwoRanksCountAgainstTheKernel(int shortRuns, Algorithm ofRows) {
    try (RankGang gang = gang(2, true)) {
      gang.run(
          communicator -> {
            RaggedContract.Sizes sizes = (from, to, update) -> update == 0 ? 15_000 : 1_250;
            RaggedContract.exchange(communicator, DataType.FLOAT32, 1 + shortRuns, 1, sizes);
            assertThat(calls(communicator, ofRows)).isEqualTo(1);
          });
    }
  }

  private static long calls(Communicator communicator, Algorithm algorithm) {
    return communicator.metrics().total(algorithm).calls();
  }

  /** Rank 0 has 1 update, rank 1 more: one time more than a slot has room for. */
  @ParameterizedTest
  @ValueSource(ints = {3, 2100})
  void differentNumbersOfUpdatesAreNamedByBothRanks(int updates) {
    try (RankGang gang = gang(2, true)) {
      List<CollectiveException> failures =
          gang.ask(
              communicator -> {
                int mine = communicator.rank() == 1 ? updates : 1;
                long[] zeros = new long[2 * mine];
                RaggedLayout layout = new RaggedLayout(1, zeros, zeros, zeros, zeros);
                return catchThrowableOfType(
                    CollectiveException.class,
                    () ->
                        communicator.raggedAllToAll(
                            CommunicatorContract.buffer(DataType.INT32, 4),
                            CommunicatorContract.buffer(DataType.INT32, 4),
                            layout));
              });
      assertThat(failures)
          .allSatisfy(
              failure -> {
                assertThat(failure.kind()).isEqualTo(Kind.MISMATCH);
                assertThat(failure.ranks()).containsExactly(0, 1);
              });
    }
  }
}
