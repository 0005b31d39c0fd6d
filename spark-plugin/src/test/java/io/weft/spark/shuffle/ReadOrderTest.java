package io.weft.spark.shuffle;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.spark.shuffle.ShuffleBlocks.ReadRange;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** Readers do not all ask the same executor first. */
class ReadOrderTest {
  private static final int EXECUTORS = 10;
  private static final int READERS = 1000;

  private static List<Integer> order(ReadRange range) {
    List<Integer> order = new ArrayList<>(IntStream.range(0, EXECUTORS).boxed().toList());
    range.shuffle(order);
    return order;
  }

  /** Adaptive execution gives a reader several partitions. */
  @Test
  void firstRequestsAreSpreadOverExecutors() {
    for (int width : new int[] {1, EXECUTORS, 16, 64}) {
      Map<Integer, Integer> first = new HashMap<>();
      for (int reader = 0; reader < READERS; reader++) {
        int start = reader * width;
        ReadRange range = new ReadRange(3, 0, Integer.MAX_VALUE, start, start + width);
        first.merge(order(range).get(0), 1, Integer::sum);
      }
      assertThat(first).as("readers of %d partitions", width).hasSize(EXECUTORS);
      assertThat(first.values())
          .allMatch(count -> count > READERS / EXECUTORS / 2 && count < 2 * READERS / EXECUTORS);
    }
  }

  @Test
  void aReaderKeepsItsOrderAndAsksEveryExecutor() {
    ReadRange range = new ReadRange(3, 0, 7, 5, 6);
    assertThat(order(range))
        .isEqualTo(order(new ReadRange(3, 0, 7, 5, 6)))
        .containsExactlyInAnyOrderElementsOf(IntStream.range(0, EXECUTORS).boxed().toList())
        .isNotEqualTo(order(new ReadRange(3, 0, 7, 6, 7)));
  }
}
