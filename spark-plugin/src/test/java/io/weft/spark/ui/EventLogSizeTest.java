package io.weft.spark.ui;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.util.JsonProtocol;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** How many bytes the Weft tab adds to Spark's event log. docs/monitoring.md names the bound. */
class EventLogSizeTest {
  private static final int SHUFFLES = 1000;
  private static final int EXECUTORS = 100;
  private static final int SHUFFLES_AT_A_TIME = 5;

  private final MadeUpActivity made = new MadeUpActivity();
  private final List<String> log = new ArrayList<>();
  private final EventLogPosts posts =
      new EventLogPosts(
          made.activity,
          made::overview,
          event -> log.add(JsonProtocol.sparkEventToJsonString(event)),
          made.clock::get);

  /** Five shuffles at a time, which all executors read from each other. */
  private void run(long secondsOfAStep) {
    for (int first = 0; first < SHUFFLES; first += SHUFFLES_AT_A_TIME) {
      for (int i = 0; i < SHUFFLES_AT_A_TIME; i++) {
        made.shuffle(first + i);
      }
      for (int executor = 0; executor < EXECUTORS; executor++) {
        made.report(executor, EXECUTORS, first, SHUFFLES_AT_A_TIME);
      }
      made.clock.addAndGet(secondsOfAStep * 1000);
      posts.postIfDue();
    }
    posts.postLast();
  }

  private long bytes() {
    return log.stream().mapToLong(String::length).sum();
  }

  @Test
  void aThousandShufflesOfAHundredExecutorsAreTwoMegabytes() {
    run(15);
    assertThat(log.size()).isLessThan(20);
    assertThat(bytes()).isBetween(500_000L, 2_500_000L);
  }

  /** The same work in more time adds the pictures of memory of few more posts. */
  @ParameterizedTest
  @CsvSource({"150, 5_000_000", "1500, 9_000_000"})
  void timeAddsLittle(long secondsOfAStep, String most) {
    run(secondsOfAStep);
    assertThat(bytes()).isLessThan(Long.parseLong(most.replace("_", "")));
  }

  @Test
  void anApplicationThatDoesNothingLogsTwoSmallEvents() {
    made.clock.addAndGet(60_000);
    posts.postIfDue();
    posts.postIfDue();
    posts.postLast();
    assertThat(log).hasSize(2);
    assertThat(bytes()).isLessThan(1_000);
  }
}
