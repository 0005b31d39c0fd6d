package io.weft.spark.feed;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.spark.feed.FeedExchange.FeedCores;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.spark.SparkConf;
import org.junit.jupiter.api.Test;

/** Executors that arrive late, and executors that never arrive. */
class FeedCoresTest {
  private static final SparkConf CONF = new SparkConf(false);

  @Test
  void lateExecutorsAreAwaitedWithoutAWarning() {
    AtomicInteger looks = new AtomicInteger();
    assertThat(
            FeedCores.await(
                () -> looks.incrementAndGet() < 5 ? 0 : 4, 4, Duration.ofMinutes(5), CONF))
        .isEmpty();
    assertThat(looks).hasValue(5);
  }

  @Test
  void enoughCoresNeedNoWait() {
    AtomicInteger looks = new AtomicInteger();
    assertThat(FeedCores.await(() -> 2 + looks.getAndIncrement(), 2, Duration.ofDays(1), CONF))
        .isEmpty();
    assertThat(looks).hasValue(1);
  }

  @Test
  void tooFewCoresAreReportedAfterTheTimeout() {
    SparkConf conf =
        new SparkConf(false)
            .set("spark.scheduler.barrier.maxConcurrentTasksCheck.maxFailures", "3");
    assertThat(FeedCores.await(() -> 1, 2, Duration.ofMillis(120), conf).orElseThrow())
        .isEqualTo(
            "A feed's 2 ranks run at the same time, and the present executors can run 1 tasks:"
                + " Spark waits for more, 3 times for 15s, and then fails the job");
  }

  @Test
  void anInterruptEndsTheWaitAndStaysSet() {
    Thread.currentThread().interrupt();
    assertThat(FeedCores.await(() -> 1, 2, Duration.ofDays(1), CONF)).isPresent();
    assertThat(Thread.interrupted()).isTrue();
  }
}
