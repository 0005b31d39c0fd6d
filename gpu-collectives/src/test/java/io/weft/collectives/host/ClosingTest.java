package io.weft.collectives.host;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveException.Kind;
import io.weft.collectives.CommunicatorFactory;
import io.weft.collectives.contract.RankGang;
import io.weft.logging.CapturedLogs;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Other ranks learn why a rank closed, and may send it requests meanwhile. */
class ClosingTest {
  @TempDir Path folder;

  private RankGang gang(boolean oneHost) {
    CommunicatorFactory factory = Hosts.factory(folder, (rank, nranks) -> oneHost ? 0 : rank);
    return RankGang.open(factory, 2, Duration.ofSeconds(20));
  }

  /** The abort pauses between breaking the communicator and telling the others. */
  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void closeDuringAnAbortReportsTheReason(boolean oneHost) throws Exception {
    CountDownLatch aborting = new CountDownLatch(1);
    CountDownLatch closed = new CountDownLatch(1);
    try (RankGang gang = gang(oneHost)) {
      Thread aborter = new Thread(() -> gang.rank(0).abort("the data is bad"), "aborter");
      try (CapturedLogs.Listening listening =
          CapturedLogs.onLine(line -> hold(line, aborter, aborting, closed))) {
        aborter.start();
        assertThat(aborting.await(60, TimeUnit.SECONDS)).as(listening.toString()).isTrue();
        gang.rank(0).close();
      } finally {
        closed.countDown();
      }
      aborter.join();
      CollectiveException failure =
          catchThrowableOfType(CollectiveException.class, gang.rank(1)::barrier);
      assertThat(failure).hasMessageContaining("the data is bad");
      assertThat(failure.kind()).isEqualTo(Kind.ABORTED);
      assertThat(failure.ranks()).containsExactly(0);
    }
  }

  private static void hold(
      String line, Thread aborter, CountDownLatch aborting, CountDownLatch closed) {
    if (Thread.currentThread() == aborter && line.contains("the data is bad")) {
      aborting.countDown();
      try {
        assertThat(closed.await(60, TimeUnit.SECONDS)).isTrue();
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
      }
    }
  }

  /** The close is known even to a rank that runs no operation. */
  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void closeOfAnotherRankIsKnown(boolean oneHost) {
    try (RankGang gang = gang(oneHost)) {
      HostCommunicator rank = (HostCommunicator) gang.rank(0);
      assertThat(rank.peerFailure(1)).isEmpty();
      gang.rank(1).close();
      CollectiveException end =
          Awaitility.await()
              .atMost(Duration.ofSeconds(60))
              .until(() -> rank.peerFailure(1), Optional::isPresent)
              .orElseThrow();
      assertThat(end).hasMessage("rank 1 closed its communicator");
      assertThat(end.kind()).isEqualTo(Kind.CLOSED);
      assertThat(end.ranks()).containsExactly(1);
    }
  }

  /** Its segment is unmapped by then: reading it would end the process. */
  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void closedRankAnswersWithoutItsSegment(boolean oneHost) {
    try (RankGang gang = gang(oneHost)) {
      HostCommunicator rank = (HostCommunicator) gang.rank(0);
      rank.close();
      assertThat(rank.ownWaiting()).isEmpty();
      assertThat(rank.peerFailure(1)).isPresent();
      rank.abort("too late");
      assertThat(rank.failure().orElseThrow().kind()).isEqualTo(Kind.CLOSED);
    }
  }
}
