package io.weft.collectives.clique;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveException.Kind;
import io.weft.collectives.Communicator;
import io.weft.collectives.UniqueId;
import java.io.File;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class RestartedProcessTest {
  @TempDir Path folder;

  private Process start(String incarnation, List<UniqueId> ids) throws IOException {
    return new ProcessBuilder(
            Path.of(System.getProperty("java.home"), "bin", "java").toString(),
            "-Xmx64m",
            "-cp",
            System.getProperty("java.class.path"),
            RestartedProcess.class.getName(),
            folder.toString(),
            incarnation,
            ids.get(0).encode(),
            ids.get(1).encode())
        .redirectErrorStream(true)
        .redirectOutput(new File(folder.toFile(), incarnation + ".log"))
        .start();
  }

  /**
   * Trap: a process restarts under its old name and gets a communicator of its earlier incarnation.
   */
  @Test
  void restartedProcessNeverGetsTheCommunicatorOfItsEarlierIncarnation() throws Exception {
    try (CliqueCommunicators communicators = RestartedProcess.communicators(folder)) {
      Communicator first = live(communicators, "first");
      Communicator second = live(communicators, "second");
      assertThat(second).isNotSameAs(first);
      assertThat(communicators.statistics()).isEqualTo(new CliqueStatistics(4, 4, 2, 2, 0));
    }
  }

  /**
   * Runs one incarnation of the other process: acquires with it twice, finds it dead, and removes
   * its communicators.
   */
  private Communicator live(CliqueCommunicators communicators, String incarnation)
      throws Exception {
    List<UniqueId> ids = List.of(UniqueId.create(), UniqueId.create());
    Process peer = start(incarnation, ids);
    CliqueKey key = RestartedProcess.key(incarnation);
    Communicator communicator;
    try (CliqueLease lease = RestartedProcess.acquire(communicators, key, 0, folder, ids.get(0))) {
      lease.communicator().barrier();
    }
    try (CliqueLease lease = RestartedProcess.acquire(communicators, key, 0, folder, ids.get(1))) {
      communicator = lease.communicator();
      communicator.barrier();
      CollectiveException failure =
          catchThrowableOfType(CollectiveException.class, communicator::barrier);
      assertThat(failure.kind()).as(failure.getMessage()).isEqualTo(Kind.DEAD);
      assertThat(failure.ranks()).containsExactly(1);
      communicators.fail("executor-1", incarnation, failure.getMessage()).run();
    }
    assertThat(peer.waitFor(60, TimeUnit.SECONDS)).isTrue();
    return communicator;
  }
}
