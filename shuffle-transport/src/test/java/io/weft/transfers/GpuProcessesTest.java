package io.weft.transfers;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.collectives.UniqueId;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Two executors in separate processes, each with a GPU. */
class GpuProcessesTest {
  private static final Duration DEADLINE = Duration.ofSeconds(90);

  @TempDir Path folder;

  private final List<TransferProcess> processes = new ArrayList<>();

  @BeforeAll
  static void needsDoubles() {
    TestGpus.assume();
  }

  @AfterEach
  void endAll() {
    processes.forEach(TransferProcess::close);
  }

  /** The death of a process is noticed long before the deadline, also if NCCL reports nothing. */
  @Test
  void arraysMoveInBothDirectionsUntilAProcessIsKilled() throws Exception {
    exchangeUntilOneIsKilled("10 groups, ");
  }

  /** Arrays are copied once. The surviving process frees its mappings and its shared memory. */
  @Test
  void twoOnOneGpuMapEachOthersMemoryUntilOneIsKilled() throws Exception {
    exchangeUntilOneIsKilled(
        "10 groups, 0 copies through the host, 0 of NCCL",
        TestGpus.sharedProperty(),
        "NCCL_MULTI_RANK_GPU_ENABLE=0");
    processes.get(0).order("close");
    assertThat(processes.get(0).answer()).isEqualTo("nothing is left behind");
  }

  /** NCCL 2.30.3 and newer takes both, if the environment says so at both ends. */
  @Test
  void twoOnOneGpuUseNcclIfItSharesGpus() throws Exception {
    TestGpus.assumeDoubles(); // Elsewhere the first test does this.
    exchangeUntilOneIsKilled(
        "10 groups, 0 copies through the host, 10 of NCCL",
        TestGpus.sharedProperty(),
        "NCCL_MULTI_RANK_GPU_ENABLE=1");
  }

  private void exchangeUntilOneIsKilled(String statistics, String... properties) throws Exception {
    String[] all = Arrays.copyOf(properties, properties.length + 1);
    all[properties.length] = TestGpus.property();
    List<String> bootstrapIds = List.of(UniqueId.create().encode(), UniqueId.create().encode());
    for (int executor = 0; executor < 2; executor++) {
      processes.add(new TransferProcess(folder, "host", executor, DEADLINE, bootstrapIds, all));
    }
    processes.forEach(process -> process.order("exchange"));
    for (TransferProcess process : processes) {
      String answer = process.answer();
      assertThat(answer).startsWith("right, with 1 communicator, " + statistics);
      if (statistics.contains(", 0 of NCCL") && TestGpus.areDoubles()) {
        assertThat(answer).matches(".*, ([1-9]\\d*) bytes copied for \\1");
      }
    }
    processes.get(0).order("wait");
    assertThat(processes.get(0).answer()).isEqualTo("waits");
    long start = System.nanoTime();
    processes.get(1).kill();
    assertThat(processes.get(0).answer())
        .contains("key 99 from executor 1/device 0 to executor 0/device 0 failed: ")
        .contains("rank 1");
    assertThat(Duration.ofNanos(System.nanoTime() - start)).isLessThan(DEADLINE);
  }
}
