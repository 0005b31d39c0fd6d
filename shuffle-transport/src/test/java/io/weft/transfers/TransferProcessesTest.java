package io.weft.transfers;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.collectives.UniqueId;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Two executors in separate processes, on one host or on two. */
class TransferProcessesTest {
  private static final Duration DEADLINE = Duration.ofSeconds(90);

  @TempDir Path folder;

  private final List<TransferProcess> processes = new ArrayList<>();

  private void start(boolean sameHost, Duration deadline) throws Exception {
    List<String> bootstrapIds = List.of(UniqueId.create().encode(), UniqueId.create().encode());
    for (int executor = 0; executor < 2; executor++) {
      String host = "host-" + (sameHost ? 0 : executor);
      processes.add(new TransferProcess(folder, host, executor, deadline, bootstrapIds));
    }
  }

  @AfterEach
  void endAll() {
    processes.forEach(TransferProcess::close);
  }

  private List<String> all(String order) throws Exception {
    processes.forEach(process -> process.order(order));
    List<String> answers = new ArrayList<>();
    for (TransferProcess process : processes) {
      answers.add(process.answer());
    }
    return answers;
  }

  /** A killed process is noticed long before the deadline, and both ends are named. */
  @ParameterizedTest(name = "on the same host: {0}")
  @ValueSource(booleans = {true, false})
  void arraysMoveInBothDirectionsUntilAProcessIsKilled(boolean sameHost) throws Exception {
    start(sameHost, DEADLINE);
    assertThat(all("exchange"))
        .allSatisfy(
            answer -> assertThat(answer).startsWith("right, with 1 communicator, 10 groups, "));
    processes.get(0).order("wait");
    assertThat(processes.get(0).answer()).isEqualTo("waits");
    long start = System.nanoTime();
    processes.get(1).kill();
    assertThat(processes.get(0).answer())
        .contains("key 99 from executor 1/device 0 to executor 0/device 0 failed: ")
        .contains("rank 1")
        .contains("dead");
    assertThat(Duration.ofNanos(System.nanoTime() - start)).isLessThan(DEADLINE);
  }

  /** The process is killed while idle, and the loss is not reported to the other. */
  @ParameterizedTest(name = "on the same host: {0}")
  @ValueSource(booleans = {true, false})
  void aProcessKilledBetweenTransfersIsNamedByTheNextOne(boolean sameHost) throws Exception {
    start(sameHost, DEADLINE);
    assertThat(all("exchange")).allSatisfy(answer -> assertThat(answer).startsWith("right"));
    processes.get(1).kill();
    long start = System.nanoTime();
    processes.get(0).order("receive");
    assertThat(processes.get(0).answer())
        .contains("key 99 from executor 1/device 0 to executor 0/device 0 failed: ")
        .contains("rank 1 is dead");
    assertThat(Duration.ofNanos(System.nanoTime() - start)).isLessThan(DEADLINE);
  }

  /** Trap 15: a stopped process delays others only until the deadline. */
  @Test
  void aStoppedProcessIsNamedAtTheDeadline() throws Exception {
    start(false, Duration.ofSeconds(10));
    assertThat(all("cliques")).as("both processes run").hasSize(2);
    assertThat(all("exchange")).allSatisfy(answer -> assertThat(answer).startsWith("right"));
    processes.get(0).order("wait");
    assertThat(processes.get(0).answer()).isEqualTo("waits");
    processes.get(1).stop();
    assertThat(processes.get(0).answer())
        .contains("key 99 from executor 1/device 0 to executor 0/device 0 ");
  }

  /** Trap 2: hash codes differ between processes, the order does not. */
  @Test
  void theOrderOfCliquesIsTheSameInEveryProcess() throws Exception {
    start(true, DEADLINE);
    List<String> orders = all("cliques");
    assertThat(orders.get(0)).contains("peer-").isEqualTo(orders.get(1));
  }
}
