package io.weft.collectives.process;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.function.IntUnaryOperator;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/** Ranks in processes of their own, on one host, on a host each, and two on each of two. */
class ProcessRanksTest {
  /** Which host a rank is on. */
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

  @TempDir Path folder;

  private final List<RankProcess> ranks = new ArrayList<>();

  @AfterEach
  void endAll() {
    ranks.forEach(RankProcess::close);
  }

  private void start(Placement placement, int nranks, Duration timeout) throws Exception {
    for (int rank = 0; rank < nranks; rank++) {
      String host = "host-" + placement.host.applyAsInt(rank);
      ranks.add(new RankProcess(folder, host, rank, nranks, timeout));
    }
    ranks.get(0).order("listen");
    String id = ranks.get(0).answer();
    for (RankProcess rank : ranks.subList(1, nranks)) {
      rank.order("join " + id);
      assertThat(rank.answer()).isEqualTo("joins");
    }
    assertThat(all("create")).containsOnly("created");
  }

  private List<String> all(String order) throws Exception {
    ranks.forEach(rank -> rank.order(order));
    return answers(ranks);
  }

  private static List<String> answers(List<RankProcess> from) throws Exception {
    List<String> answers = new ArrayList<>();
    for (RankProcess rank : from) {
      answers.add(rank.answer());
    }
    return answers;
  }

  private List<RankProcess> survivors() {
    List<RankProcess> survivors = new ArrayList<>(ranks);
    survivors.remove(VICTIM);
    return survivors;
  }

  @ParameterizedTest
  @CsvSource({"SHARED_MEMORY, 2", "SHARED_MEMORY, 4", "NETWORK, 2", "NETWORK, 4", "MIXED, 4"})
  void collectivesAreRightBetweenProcesses(Placement placement, int nranks) throws Exception {
    start(placement, nranks, Duration.ofSeconds(50));
    assertThat(all("check")).containsOnly("right");
    assertThat(all("close")).containsOnly("closed");
  }

  @ParameterizedTest
  @EnumSource
  void killedRankIsNamedByAllLongBeforeTheTimeout(Placement placement) throws Exception {
    start(placement, 4, Duration.ofMinutes(5));
    assertThat(all("loop")).containsOnly("loops");
    ranks.get(VICTIM).signal("KILL");
    assertThat(answers(survivors()))
        .allSatisfy(answer -> assertThat(answer).startsWith("DEAD [2] ").contains("rank 2"));
  }

  @ParameterizedTest
  @EnumSource
  void stoppedRankIsNamedAtTheTimeout(Placement placement) throws Exception {
    start(placement, 4, Duration.ofSeconds(5));
    assertThat(all("loop")).containsOnly("loops");
    ranks.get(VICTIM).signal("STOP");
    assertThat(answers(survivors()))
        .allSatisfy(answer -> assertThat(answer).startsWith("TIMEOUT [2] ").contains("rank 2"));
  }

  /** A rank that ends in an orderly way is not dead but closed. */
  @ParameterizedTest
  @EnumSource
  void closedRankIsNamed(Placement placement) throws Exception {
    start(placement, 4, Duration.ofSeconds(50));
    assertThat(all("check")).containsOnly("right");
    ranks.get(VICTIM).order("close");
    assertThat(ranks.get(VICTIM).answer()).isEqualTo("closed");
    List<RankProcess> survivors = survivors();
    survivors.forEach(rank -> rank.order("loop"));
    assertThat(answers(survivors))
        .allSatisfy(answer -> assertThat(answer).startsWith("CLOSED [2] "));
  }
}
