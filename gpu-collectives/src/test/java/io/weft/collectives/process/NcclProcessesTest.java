package io.weft.collectives.process;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.device.DoubleLibraries;
import io.weft.device.UsesDoubles;
import io.weft.testgpus.TestMachine;
import io.weft.testgpus.UsesGpu;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests ranks of NCCL in separate processes. */
@UsesGpu
class NcclProcessesTest {
  private static final int VICTIM = 2;

  @TempDir Path folder;

  private final List<RankProcess> processes = new ArrayList<>();

  @AfterEach
  void endAll() {
    processes.forEach(RankProcess::close);
  }

  private void start(int nranks, Duration timeout) throws Exception {
    TestMachine.assume(nranks);
    start(nranks, timeout, Map.of(), TestMachine.property());
    assertThat(all("create")).containsOnly("created");
  }

  private void start(
      int nranks, Duration timeout, Map<String, String> environment, String... properties)
      throws Exception {
    for (int rank = 0; rank < nranks; rank++) {
      processes.add(
          new RankProcess(environment, folder, "host", rank, nranks, timeout, properties));
    }
    processes.get(0).order("listen");
    String id = processes.get(0).answer();
    for (RankProcess rank : processes.subList(1, nranks)) {
      rank.order("join " + id);
      assertThat(rank.answer()).isEqualTo("joins");
    }
  }

  /** The property that makes a child process use an older libnccl. */
  private static String older(String version) {
    return "-D" + TestMachine.FOLDER_PROPERTY + "=" + DoubleLibraries.folder().resolve(version);
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
   * NCCL itself would wait for ever for a killed rank with shared memory. Maxima of floats go
   * through the host, those of integers through NCCL.
   */
  @ParameterizedTest
  @ValueSource(strings = {"FLOAT32", "INT32"})
  void killedRankIsNamedByAllLongBeforeTheTimeout(String type) throws Exception {
    start(3, Duration.ofMinutes(5));
    assertThat(all("loop " + type)).containsOnly("loops");
    processes.get(VICTIM).signal("KILL");
    assertSurvivorsNameTheVictim();
  }

  /** The others are inside the operation too, and wait for the second half of the victim's data. */
  @ParameterizedTest
  @UsesDoubles
  @ValueSource(ints = {1, 3, 8})
  void rankKilledInsideAnOperationOfNcclIsNamed(int chunk) throws Exception {
    start(3, Duration.ofMinutes(5));
    List<RankProcess> survivors = processes.subList(0, VICTIM);
    survivors.forEach(rank -> rank.order("loop INT32"));
    processes.get(VICTIM).order("die " + chunk);
    assertThat(processes.get(VICTIM).answer()).isEqualTo("its process has ended");
    assertSurvivorsNameTheVictim();
  }

  /** As the tasks of a barrier stage that Spark repeats. */
  @ParameterizedTest
  @UsesDoubles
  @ValueSource(strings = {".", "without-windows"})
  void survivorsOfAKilledRankMakeANewCommunicator(String version) throws Exception {
    start(3, Duration.ofSeconds(60), Map.of(), older(version));
    assertThat(all("create")).containsOnly("created");
    List<RankProcess> survivors = List.of(processes.get(0), processes.get(1));
    survivors.forEach(rank -> rank.order("loop INT32"));
    processes.get(VICTIM).order("die 3");
    assertThat(processes.get(VICTIM).answer()).isEqualTo("its process has ended");
    assertSurvivorsNameTheVictim();
    processes.remove(VICTIM).close();
    assertThat(all("close")).containsOnly("closed");
    processes.get(0).order("relisten");
    String id = processes.get(0).answer();
    processes.get(1).order("rejoin " + id + " 1");
    assertThat(processes.get(1).answer()).isEqualTo("joins");
    assertThat(all("create")).containsOnly("created");
    assertThat(all("check")).containsOnly("right");
    assertThat(all("close")).containsOnly("closed");
  }

  /**
   * Each rank has to leave room on the GPU for the kernels of the other, so there are few blocks.
   */
  @Test
  void ranksShareAGpuWhereNcclLetsThem() throws Exception {
    startOnOneGpu();
    assertThat(all("check")).containsOnly("right");
    assertThat(all("close")).containsOnly("closed");
  }

  private void startOnOneGpu() throws Exception {
    start(
        2,
        Duration.ofSeconds(60),
        Map.of("NCCL_MULTI_RANK_GPU_ENABLE", "1", "NCCL_MAX_CTAS", "8"),
        TestMachine.property(),
        "-Dweft.test.gpu=5");
    List<String> created = all("create");
    TestMachine.assumeNotRefused(created.get(0));
    assertThat(created).containsOnly("created");
  }

  /** The only death inside a collective that a machine with one GPU can show. */
  @Test
  void rankKilledBesideAnotherOnItsGpuIsNamed() throws Exception {
    startOnOneGpu();
    assertThat(all("loop INT32")).containsOnly("loops");
    // Not by the program kill, which a bare machine may lack.
    processes.get(1).close();
    assertThat(processes.get(0).answer()).startsWith("DEAD [1] ").contains("rank 1");
  }

  @Test
  @UsesDoubles
  void ranksOnOneGpuAreRefusedWhereNcclDoesNot() throws Exception {
    start(
        2,
        Duration.ofSeconds(60),
        Map.of("NCCL_MULTI_RANK_GPU_ENABLE", "1"),
        older("without-sharing"),
        "-Dweft.test.gpu=5");
    assertThat(all("create"))
        .allSatisfy(
            answer ->
                assertThat(answer)
                    .startsWith("MISMATCH [0, 1] rank 0 and rank 1 are both on GPU")
                    .contains("these have 2.28.3"));
  }

  @Test
  @UsesDoubles
  void lostDeviceIsNamedByAll() throws Exception {
    start(3, Duration.ofMinutes(5));
    for (RankProcess rank : processes.subList(0, VICTIM)) {
      rank.order("loop INT32");
    }
    processes.get(VICTIM).order("lose");
    assertThat(answers(processes))
        .allSatisfy(
            answer ->
                assertThat(answer)
                    .contains("cuda:" + VICTIM)
                    .contains("CUDA_ERROR_LAUNCH_FAILED (719); this process has lost the GPU"));
  }

  /** The victim dies in the middle of a graph that the others run too. */
  @Test
  @UsesDoubles
  void rankKilledInsideAReplayIsNamed() throws Exception {
    start(3, Duration.ofMinutes(5));
    for (RankProcess rank : processes.subList(0, VICTIM)) {
      rank.order("replay 0");
    }
    processes.get(VICTIM).order("replay 3");
    assertThat(answers(processes)).containsOnly("replays");
    assertThat(processes.get(VICTIM).answer()).isEqualTo("its process has ended");
    assertSurvivorsNameTheVictim();
  }

  private void assertSurvivorsNameTheVictim() throws Exception {
    assertThat(answers(processes.subList(0, VICTIM)))
        .allSatisfy(answer -> assertThat(answer).startsWith("DEAD [2] ").contains("rank 2"));
  }
}
