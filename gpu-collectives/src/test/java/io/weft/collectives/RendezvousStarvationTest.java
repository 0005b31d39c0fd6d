package io.weft.collectives;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.weft.collectives.CollectiveException.Kind;
import io.weft.collectives.bootstrap.ThreadRendezvous;
import io.weft.device.Deadline;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class RendezvousStarvationTest {
  /** Trap: participants on a pool with fewer threads than participants wait for each other. */
  @Test
  void fewerThreadsThanRanksFailAtTheDeadlineAndNameTheMissingRank() throws Exception {
    ThreadRendezvous<Integer, Integer> rendezvous =
        new ThreadRendezvous<>("crowded", 3, List::size);
    ExecutorService two = Executors.newFixedThreadPool(2);
    try {
      List<Future<CollectiveException>> all = new ArrayList<>();
      for (int rank = 0; rank < 3; rank++) {
        int self = rank;
        all.add(
            two.submit(
                () ->
                    catchThrowableOfType(
                        CollectiveException.class,
                        () ->
                            rendezvous.arrive(self, self, Deadline.after(Duration.ofSeconds(2))))));
      }
      for (Future<CollectiveException> each : all) {
        CollectiveException failure = each.get(60, TimeUnit.SECONDS);
        assertThat(failure.kind()).isEqualTo(Kind.TIMEOUT);
        assertThat(failure.ranks()).containsExactly(2);
      }
    } finally {
      two.shutdownNow();
    }
  }
}
