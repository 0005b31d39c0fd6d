package io.weft.collectives.process;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.device.library.DoubleLibraries;
import io.weft.device.library.UsesDoubles;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Ranks of NCCL in processes of their own, over the doubles of libcuda and libnccl. */
@UsesDoubles
class NcclProcessesTest {
  private static final int VICTIM = 2;

  @TempDir Path folder;

  private final List<RankProcess> processes = new ArrayList<>();

  @AfterEach
  void endAll() {
    processes.forEach(RankProcess::close);
  }

  private void start(int nranks, Duration timeout) throws Exception {
    String doubles = "-D" + DoubleLibraries.FOLDER_PROPERTY + "=" + DoubleLibraries.folder();
    for (int rank = 0; rank < nranks; rank++) {
      processes.add(new RankProcess(folder, "host", rank, nranks, timeout, doubles));
    }
    processes.get(0).order("listen");
    String id = processes.get(0).answer();
    for (RankProcess rank : processes.subList(1, nranks)) {
      rank.order("join " + id);
      assertThat(rank.answer()).isEqualTo("joins");
    }
    assertThat(all("create")).containsOnly("created");
  }

  private List<String> all(String order) throws Exception {
    processes.forEach(rank -> rank.order(order));
    return answers(processes);
  }

  private static List<String> answers(List<RankProcess> ranks) throws Exception {
    List<String> answers = new ArrayList<>();
    for (RankProcess rank : ranks) {
      answers.add(rank.answer());
    }
    return answers;
  }

  @Test
  void collectivesAreRightBetweenProcesses() throws Exception {
    start(3, Duration.ofSeconds(60));
    assertThat(all("check")).containsOnly("right");
    assertThat(all("close")).containsOnly("closed");
  }

  /**
   * NCCL itself would wait for ever for what shares memory with it. Maxima of floats go through the
   * host, those of integers by NCCL.
   */
  @ParameterizedTest
  @ValueSource(strings = {"FLOAT32", "INT32"})
  void killedRankIsNamedByAllLongBeforeTheTimeout(String type) throws Exception {
    start(3, Duration.ofMinutes(5));
    assertThat(all("loop " + type)).containsOnly("loops");
    processes.get(VICTIM).signal("KILL");
    assertSurvivorsNameTheVictim();
  }

  /** The others are inside as well, and wait for the second half of what the victim sends. */
  @ParameterizedTest
  @ValueSource(ints = {1, 3, 8})
  void rankKilledInsideAnOperationOfNcclIsNamed(int chunk) throws Exception {
    start(3, Duration.ofMinutes(5));
    List<RankProcess> survivors = processes.subList(0, VICTIM);
    survivors.forEach(rank -> rank.order("loop INT32"));
    processes.get(VICTIM).order("die " + chunk);
    assertThat(processes.get(VICTIM).answer()).isEqualTo("its process has ended");
    assertSurvivorsNameTheVictim();
  }

  private void assertSurvivorsNameTheVictim() throws Exception {
    assertThat(answers(processes.subList(0, VICTIM)))
        .allSatisfy(answer -> assertThat(answer).startsWith("DEAD [2] ").contains("rank 2"));
  }
}
