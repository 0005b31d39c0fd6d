package io.weft.spark.transfers;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.Test;

/** News of executors that are gone come through, whatever becomes of the news before. */
class DeparturesTest {
  private final DepartedExecutors gone = new DepartedExecutors();
  private final Queue<String> heard = new ConcurrentLinkedQueue<>();

  private void leave(int... executors) {
    IntStream.of(executors)
        .forEach(
            executor ->
                assertThat(gone.add(new Departure(Integer.toString(executor), "it left")))
                    .isTrue());
  }

  /** The way to a driver that refuses now and then. */
  private TransferDriver driver() {
    return new TransferDriver() {
      private int asked;

      @Override
      public CliqueAnswer meet(CliqueCall call) {
        throw new UnsupportedOperationException("nobody meets here");
      }

      @Override
      public List<Departure> departures(int known) {
        if (++asked % 2 == 0) {
          throw new IllegalStateException("the driver is busy");
        }
        return gone.since(known);
      }
    };
  }

  private void awaitNews(String... executors) {
    Awaitility.await("news of all that left")
        .atMost(Duration.ofSeconds(60))
        .untilAsserted(() -> assertThat(heard).containsExactlyInAnyOrder(executors));
  }

  @Test
  void oneThatCannotBeEndedHidesNoOther() {
    leave(1, 2, 3);
    try (Departures departures =
        new Departures(
            driver(),
            5,
            departure -> {
              heard.add(departure.executorId());
              if (departure.executorId().equals("1")) {
                throw new IllegalStateException("as the test wants");
              }
            })) {
      departures.begin();
      departures.begin();
      awaitNews("1", "2", "3");
      leave(4);
      awaitNews("1", "2", "3", "4");
    }
  }

  @Test
  void oneThatTakesLongHoldsUpNoOther() throws Exception {
    CountDownLatch ended = new CountDownLatch(1);
    try (Departures departures =
        new Departures(
            driver(),
            5,
            departure -> {
              heard.add(departure.executorId());
              try {
                // For ever, as far as this test goes.
                assertThat(ended.await(1, TimeUnit.HOURS)).isTrue();
              } catch (InterruptedException e) {
                ended.countDown();
              }
            })) {
      departures.begin();
      leave(1, 2);
      awaitNews("1", "2");
      leave(3);
      awaitNews("1", "2", "3");
    }
    assertThat(ended.await(60, TimeUnit.SECONDS)).as("interrupted at the end").isTrue();
  }
}
