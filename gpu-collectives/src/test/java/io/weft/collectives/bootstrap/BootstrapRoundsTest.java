package io.weft.collectives.bootstrap;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.weft.collectives.Bootstrap;
import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveException.Kind;
import io.weft.device.Deadline;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A rank that fails before a round still takes part in it, with any kind of failure. */
class BootstrapRoundsTest {
  private static byte[] part(int rank, String what) throws IOException {
    if (rank == 1) {
      switch (what) {
        case "exception" -> throw new IOException("no space left");
        case "error" -> throw new NoClassDefFoundError("no space left");
        default -> throw new OutOfMemoryError("no space left");
      }
    }
    return new byte[0];
  }

  private static CollectiveException failureOf(Bootstrap end, String what) {
    try (end) {
      BootstrapRounds rounds = new BootstrapRounds(end, Deadline.after(Duration.ofSeconds(30)));
      return catchThrowableOfType(
          CollectiveException.class, () -> rounds.exchange("first", () -> part(end.rank(), what)));
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"exception", "error", "no memory"})
  void everyRankLearnsTheFailureOfOne(String what) throws Exception {
    List<Callable<CollectiveException>> ranks = new ArrayList<>();
    for (Bootstrap end : ThreadBootstrap.open(3)) {
      ranks.add(() -> failureOf(end, what));
    }
    ExecutorService threads = Executors.newFixedThreadPool(ranks.size());
    try {
      for (Future<CollectiveException> rank : threads.invokeAll(ranks, 2, TimeUnit.MINUTES)) {
        CollectiveException failure = rank.get();
        assertThat(failure).hasMessageContaining("no space left").hasMessageContaining("rank 1");
        assertThat(failure.ranks()).containsExactly(1);
        assertThat(failure.kind()).isEqualTo(Kind.IO);
      }
    } finally {
      threads.shutdownNow();
    }
  }
}
