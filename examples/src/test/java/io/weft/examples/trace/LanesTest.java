package io.weft.examples.trace;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class LanesTest {
  private record Span(long start, long end) {
    boolean overlaps(Span other) {
      return start < other.end && other.start < end;
    }
  }

  /** Starts come in any order and are often equal. */
  @ParameterizedTest
  @ValueSource(ints = {0, 1, 2, 17, 400})
  void noTwoEventsOfALaneOverlapAndNoLaneIsSpare(int size) {
    Random random = new Random(size);
    List<Span> spans = new ArrayList<>();
    Lanes lanes = new Lanes("Fetch");
    for (int i = 0; i < size; i++) {
      long start = random.nextInt(200);
      Span span = new Span(start, start + 1 + random.nextInt(20));
      spans.add(span);
      lanes.add(span.start(), span.end());
    }
    lanes.assign();
    Map<Integer, List<Span>> byLane = new HashMap<>();
    for (Span span : spans) {
      List<Span> lane = byLane.computeIfAbsent(lanes.next(), l -> new ArrayList<>());
      assertThat(lane).noneMatch(span::overlaps);
      lane.add(span);
    }
    long most = 0;
    for (long time = 0; time < 220; time++) {
      long at = time;
      most = Math.max(most, spans.stream().filter(s -> s.start() <= at && at < s.end()).count());
    }
    assertThat(lanes.count()).isEqualTo((int) most).isEqualTo(byLane.size());
  }
}
