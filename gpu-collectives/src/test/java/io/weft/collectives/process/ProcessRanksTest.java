package io.weft.collectives.process;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.function.IntUnaryOperator;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests ranks in separate processes: on one host, on a host each, and two on each of two hosts. */
class ProcessRanksTest {
  /** The host that each rank is on. */
  enum Placement {
    SHARED_MEMORY(rank -> 0),
    NETWORK(rank -> rank),
    MIXED(rank -> rank / 2);

    private final IntUnaryOperator host;

    Placement(IntUnaryOperator host) {
      this.host = host;
    }
  }

  private static final int VICTIM = 2;
  private static final String STAGED = "-D" + RankProcess.KERNEL_COPY + "=NEVER";
  private static final String BY_KERNEL = "-D" + RankProcess.KERNEL_COPY + "=ALWAYS";

  @TempDir Path folder;

  private final List<RankProcess> processes = new ArrayList<>();

  @AfterEach
  void endAll() {
    processes.forEach(RankProcess::close);
  }

  /** The ranks of one communicator. */
  private List<RankProcess> start(
      Placement placement, int nranks, Duration timeout, String... properties) throws Exception {
    List<RankProcess> ranks = new ArrayList<>();
    Path own = folder.resolve(placement.name());
    for (int rank = 0; rank < nranks; rank++) {
      String host = "host-" + placement.host.applyAsInt(rank);
      ranks.add(new RankProcess(own, host, rank, nranks, timeout, properties));
    }
    processes.addAll(ranks);
    ranks.get(0).order("listen");
    String id = ranks.get(0).answer();
    for (RankProcess rank : ranks.subList(1, nranks)) {
      rank.order("join " + id);
      assertThat(rank.answer()).isEqualTo("joins");
    }
    assertThat(all(ranks, "create")).containsOnly("created");
    return ranks;
  }

  private static List<String> all(List<RankProcess> ranks, String order) throws Exception {
    ranks.forEach(rank -> rank.order(order));
    return answers(ranks);
  }

  private static List<String> answers(List<RankProcess> ranks) throws Exception {
    List<String> answers = new ArrayList<>();
    for (RankProcess rank : ranks) {
      answers.add(rank.answer());
    }
    return answers;
  }

  private static List<RankProcess> survivors(List<RankProcess> ranks) {
    List<RankProcess> survivors = new ArrayList<>(ranks);
    survivors.remove(VICTIM);
    return survivors;
  }

  @ParameterizedTest
  @CsvSource({"SHARED_MEMORY, 2", "SHARED_MEMORY, 4", "NETWORK, 2", "NETWORK, 4", "MIXED, 4"})
  void collectivesAreRightBetweenProcesses(Placement placement, int nranks) throws Exception {
    List<RankProcess> ranks = start(placement, nranks, Duration.ofSeconds(50));
    assertThat(all(ranks, "check")).containsOnly("right");
    assertThat(all(ranks, "close")).containsOnly("closed");
  }

  @ParameterizedTest
  @EnumSource
  void killedRankIsNamedByAllLongBeforeTheTimeout(Placement placement) throws Exception {
    List<RankProcess> ranks = start(placement, 4, Duration.ofMinutes(5));
    assertThat(all(ranks, "loop FLOAT32")).containsOnly("loops");
    ranks.get(VICTIM).signal("KILL");
    assertThat(answers(survivors(ranks)))
        .allSatisfy(answer -> assertThat(answer).startsWith("DEAD [2] ").contains("rank 2"));
  }

  @ParameterizedTest
  @CsvSource({"2", "3", "4"})
  void stagedCollectivesAreRightBetweenProcesses(int nranks) throws Exception {
    List<RankProcess> ranks =
        start(Placement.SHARED_MEMORY, nranks, Duration.ofSeconds(50), STAGED);
    assertThat(all(ranks, "check")).containsOnly("right");
  }

  /** Two ranks that measure whether the kernel is faster choose the same for all three. */
  @ParameterizedTest
  @CsvSource({"MEASURED, 0 3", "ALWAYS, 3", "NEVER, 0"})
  void largeExchangesOfTwoProcessesAreRight(String kernelCopy, String timesByKernel)
      throws Exception {
    List<RankProcess> ranks =
        start(
            Placement.SHARED_MEMORY,
            2,
            Duration.ofSeconds(50),
            "-D" + RankProcess.KERNEL_COPY + "=" + kernelCopy);
    List<String> answers = all(ranks, "exchange");
    assertThat(answers.get(0)).isIn((Object[]) timesByKernel.split(" "));
    assertThat(answers).containsOnly(answers.get(0));
  }

  @ParameterizedTest
  @ValueSource(strings = {"swap", "gather"})
  void oneOfTwoRanksKilledInTheMiddleOfCopiesByTheKernelIsNamed(String operation) throws Exception {
    List<RankProcess> ranks = start(Placement.SHARED_MEMORY, 2, Duration.ofMinutes(5), BY_KERNEL);
    assertThat(all(ranks, operation)).containsOnly("loops by the kernel");
    ranks.get(1).signal("KILL");
    assertThat(ranks.get(0).answer()).startsWith("DEAD [1] ").contains("rank 1");
  }

  /** The copies of the others end with an error when the process and its memory have ended. */
  @Test
  void rankKilledInTheMiddleOfCopiesByTheKernelIsNamed() throws Exception {
    List<RankProcess> ranks = start(Placement.SHARED_MEMORY, 4, Duration.ofMinutes(5));
    assertThat(all(ranks, "swap")).containsOnly("loops by the kernel");
    ranks.get(VICTIM).signal("KILL");
    assertThat(answers(survivors(ranks)))
        .allSatisfy(answer -> assertThat(answer).startsWith("DEAD [2] ").contains("rank 2"));
  }

  @Test
  void rankKilledInTheMiddleOfStagedCopiesIsNamed() throws Exception {
    List<RankProcess> ranks = start(Placement.SHARED_MEMORY, 4, Duration.ofMinutes(5), STAGED);
    assertThat(all(ranks, "gather")).containsOnly("loops");
    ranks.get(VICTIM).signal("KILL");
    assertThat(answers(survivors(ranks)))
        .allSatisfy(answer -> assertThat(answer).startsWith("DEAD [2] ").contains("rank 2"));
  }

  @ParameterizedTest
  @ValueSource(strings = {"gather", "swap", "loop FLOAT32"})
  void killedRankOfTwoThatStageIsNamed(String order) throws Exception {
    List<RankProcess> ranks = start(Placement.SHARED_MEMORY, 2, Duration.ofMinutes(5), STAGED);
    assertThat(all(ranks, order)).containsOnly("loops");
    ranks.get(1).signal("KILL");
    assertThat(ranks.get(0).answer()).startsWith("DEAD [1] ").contains("rank 1");
  }

  /**
   * No operation waits for it: the locks of the host and the connections between hosts show its
   * end.
   */
  @ParameterizedTest
  @EnumSource
  void killedRankIsNamedWhileNoOperationRuns(Placement placement) throws Exception {
    List<RankProcess> ranks = start(placement, 4, Duration.ofMinutes(5));
    assertThat(all(ranks, "check")).containsOnly("right");
    ranks.get(VICTIM).signal("KILL");
    assertThat(all(survivors(ranks), "await " + VICTIM))
        .allSatisfy(answer -> assertThat(answer).startsWith("DEAD [2] rank 2 is dead: "));
  }

  /** Tests all placements at once, because each waits for a timeout. */
  @Test
  void stoppedRankIsNamedAtTheTimeout() throws Exception {
    List<List<RankProcess>> gangs = new ArrayList<>();
    for (Placement placement : Placement.values()) {
      gangs.add(start(placement, 4, Duration.ofSeconds(12)));
    }
    for (List<RankProcess> ranks : gangs) {
      assertThat(all(ranks, "loop FLOAT32")).containsOnly("loops");
      ranks.get(VICTIM).signal("STOP");
    }
    for (List<RankProcess> ranks : gangs) {
      assertThat(answers(survivors(ranks)))
          .allSatisfy(answer -> assertThat(answer).startsWith("TIMEOUT [2] ").contains("rank 2"));
    }
  }

  /** A rank that ends in an orderly way is not dead but closed. */
  @ParameterizedTest
  @EnumSource(mode = EnumSource.Mode.EXCLUDE, names = "MIXED")
  void closedRankIsNamed(Placement placement) throws Exception {
    List<RankProcess> ranks = start(placement, 4, Duration.ofSeconds(50));
    assertThat(all(ranks, "check")).containsOnly("right");
    assertThat(all(ranks.subList(VICTIM, VICTIM + 1), "close")).containsOnly("closed");
    assertThat(all(survivors(ranks), "loop FLOAT32"))
        .allSatisfy(answer -> assertThat(answer).startsWith("CLOSED [2] "));
  }
}
