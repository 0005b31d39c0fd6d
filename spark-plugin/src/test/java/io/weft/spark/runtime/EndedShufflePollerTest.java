package io.weft.spark.runtime;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.spark.runtime.Messages.AskEnded;
import io.weft.spark.runtime.Messages.Ended;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** Ended shuffles are freed without a message of their end. */
class EndedShufflePollerTest {
  private final List<Integer> held = new ArrayList<>();
  private final List<Integer> freed = new ArrayList<>();
  private final AtomicInteger requests = new AtomicInteger();
  private List<Integer> ended = List.of();

  private EndedShufflePoller shuffles(boolean driverAnswers) {
    FakeContext context =
        new FakeContext(
            () -> {
              requests.incrementAndGet();
              if (!driverAnswers) {
                throw new IllegalStateException("the driver does not answer");
              }
              return new Ended(ended);
            });
    return new EndedShufflePoller(context, () -> held, freed::add);
  }

  @Test
  void onlyEndedShufflesAreFreed() {
    try (EndedShufflePoller shuffles = shuffles(true)) {
      shuffles.poll();
      assertThat(requests).as("nothing is held").hasValue(0);
      held.addAll(List.of(3, 4, 5));
      ended = List.of(4, 9);
      shuffles.poll();
      assertThat(requests).as("nothing is held for long").hasValue(0);
      shuffles.poll();
      assertThat(freed).as("ended shuffles of the request").containsExactly(4);
      held.remove(Integer.valueOf(4));
      shuffles.poll();
      assertThat(freed).containsExactly(4);
      assertThat(requests).hasValue(2);
    }
  }

  @Test
  void anUnansweredRequestIsRetried() {
    held.add(3);
    try (EndedShufflePoller shuffles = shuffles(false)) {
      for (int look = 0; look < 3; look++) {
        shuffles.poll();
      }
      assertThat(requests).hasValue(2);
      assertThat(freed).isEmpty();
    }
  }

  /** All of them, in several messages. */
  @Test
  void manyShufflesAreSplitIntoSeveralMessages() {
    int count = 2 * AskEnded.MOST + 10;
    IntStream.range(0, count).forEach(held::add);
    ended = IntStream.range(0, count).boxed().toList();
    try (EndedShufflePoller shuffles = shuffles(true)) {
      shuffles.poll();
      shuffles.poll();
      assertThat(freed).hasSize(AskEnded.MOST);
      shuffles.poll();
      assertThat(freed).hasSize(2 * AskEnded.MOST).doesNotHaveDuplicates();
      shuffles.poll();
      assertThat(freed).containsAll(held);
    }
  }
}
