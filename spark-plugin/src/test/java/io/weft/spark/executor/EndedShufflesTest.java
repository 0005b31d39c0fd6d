package io.weft.spark.executor;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.spark.message.Messages.AskEnded;
import io.weft.spark.message.Messages.Ended;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** Ended shuffles are freed without a message of their end. */
class EndedShufflesTest {
  private final List<Integer> held = new ArrayList<>();
  private final List<Integer> freed = new ArrayList<>();
  private final AtomicInteger questions = new AtomicInteger();
  private List<Integer> ended = List.of();

  private EndedShuffles shuffles(boolean driverAnswers) {
    FakeContext context =
        new FakeContext(
            () -> {
              questions.incrementAndGet();
              if (!driverAnswers) {
                throw new IllegalStateException("the driver does not answer");
              }
              return new Ended(ended);
            });
    return new EndedShuffles(context, () -> held, freed::add);
  }

  @Test
  void onlyEndedShufflesAreFreed() {
    try (EndedShuffles shuffles = shuffles(true)) {
      shuffles.look();
      assertThat(questions).as("nothing is held").hasValue(0);
      held.addAll(List.of(3, 4, 5));
      ended = List.of(4, 9);
      shuffles.look();
      assertThat(questions).as("nothing is held for long").hasValue(0);
      shuffles.look();
      assertThat(freed).as("ended shuffles of the question").containsExactly(4);
      held.remove(Integer.valueOf(4));
      shuffles.look();
      assertThat(freed).containsExactly(4);
      assertThat(questions).hasValue(2);
    }
  }

  @Test
  void anUnansweredQuestionIsRetried() {
    held.add(3);
    try (EndedShuffles shuffles = shuffles(false)) {
      for (int look = 0; look < 3; look++) {
        shuffles.look();
      }
      assertThat(questions).hasValue(2);
      assertThat(freed).isEmpty();
    }
  }

  /** All of them, in several messages. */
  @Test
  void manyShufflesAreSplitIntoSeveralMessages() {
    int count = 2 * AskEnded.MOST + 10;
    IntStream.range(0, count).forEach(held::add);
    ended = IntStream.range(0, count).boxed().toList();
    try (EndedShuffles shuffles = shuffles(true)) {
      shuffles.look();
      shuffles.look();
      assertThat(freed).hasSize(AskEnded.MOST);
      shuffles.look();
      assertThat(freed).hasSize(2 * AskEnded.MOST).doesNotHaveDuplicates();
      shuffles.look();
      assertThat(freed).containsAll(held);
    }
  }
}
