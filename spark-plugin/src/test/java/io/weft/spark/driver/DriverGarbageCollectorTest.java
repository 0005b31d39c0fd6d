package io.weft.spark.driver;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import java.time.Duration;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** How often the driver collects garbage while executors are out of memory. */
class DriverGarbageCollectorTest {
  private static final long FIRST = DriverGarbageCollector.FIRST_PAUSE.toSeconds();

  private final AtomicLong nanos = new AtomicLong();
  private final AtomicInteger collections = new AtomicInteger();
  private volatile Set<Integer> shuffles = Set.of(1, 2);
  private volatile Duration cost = Duration.ZERO;
  private final DriverGarbageCollector garbage =
      new DriverGarbageCollector(
          nanos::get,
          () -> {
            nanos.addAndGet(cost.toNanos());
            collections.incrementAndGet();
          },
          () -> shuffles);

  @AfterEach
  void close() {
    garbage.close();
  }

  /** Executors report once a second for some time. Returns the number of collections. */
  private int pressFor(long seconds) {
    int before = collections.get();
    for (long i = 0; i < seconds; i++) {
      garbage.collect("1");
      if (garbage.isCollecting()) {
        await()
            .atMost(Duration.ofSeconds(60))
            .pollDelay(Duration.ZERO)
            .pollInterval(Duration.ofMillis(1))
            .until(() -> !garbage.isCollecting());
      }
      nanos.addAndGet(Duration.ofSeconds(1).toNanos());
    }
    return collections.get() - before;
  }

  @Test
  void thePauseDoublesWhileNothingIsFreed() {
    assertThat(pressFor(FIRST)).as("at once").isEqualTo(1);
    assertThat(pressFor(2 * FIRST)).as("in the next 20 s").isEqualTo(1);
    assertThat(pressFor(4 * FIRST)).as("in the next 40 s").isEqualTo(1);
    assertThat(pressFor(8 * FIRST)).as("in the next 80 s").isEqualTo(1);
  }

  @Test
  void stopsWhereItFreesNothingUntilAShuffleEnds() {
    assertThat(pressFor(4000)).isEqualTo(DriverGarbageCollector.MAX_USELESS);
    assertThat(pressFor(4000)).isZero();
    shuffles = Set.of(2, 3);
    assertThat(pressFor(4000)).isEqualTo(DriverGarbageCollector.MAX_USELESS);
  }

  @Test
  void continuesWhileShufflesEnd() {
    int first = 3;
    for (int i = 0; i < 50; i++) {
      assertThat(pressFor(FIRST)).isEqualTo(1);
      shuffles = Set.of(first + i);
    }
  }

  @Test
  void withoutShufflesThereIsNothingToFree() {
    shuffles = Set.of();
    assertThat(pressFor(1000)).isZero();
    shuffles = Set.of(7);
    assertThat(pressFor(FIRST)).isEqualTo(1);
  }

  /** A large driver may collect for seconds. */
  @Test
  void takesATwentiethOfTheTimeAtMost() {
    cost = Duration.ofSeconds(5);
    int first = 3;
    for (int i = 0; i < 1000; i++) {
      assertThat(pressFor(1)).isLessThanOrEqualTo(1);
      shuffles = Set.of(first + i);
    }
    assertThat(collections.get()).isBetween(8, 11);
  }
}
