package io.weft.shuffle.fetch;

import static io.weft.support.TestBlocks.expected;
import static io.weft.support.TestBlocks.readAll;
import static io.weft.support.TestBlocks.request;
import static io.weft.support.TestBlocks.write;
import static org.assertj.core.api.Assertions.assertThat;

import io.weft.shuffle.ExecutorExchange;
import io.weft.shuffle.peer.TransportMode;
import io.weft.shuffle.store.BlockKey;
import io.weft.support.TestBlocks.Sizes;
import io.weft.support.TestCluster;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Two attempts of a task both finish and publish, and the driver uses one of them. Spark does not
 * tell an executor that an attempt lost, so its memory is held until the shuffle is removed.
 */
class LosingAttemptTest {
  /** Attempts have different task attempt ids of Spark. */
  private static final BlockKey WINNER = new BlockKey(1, 10);

  private static final BlockKey LOSER = new BlockKey(1, 11);
  private static final Sizes SIZES = (map, partition, chunk) -> chunk < 3 ? 5000 : 0;

  @TempDir Path folder;

  @ParameterizedTest
  @EnumSource(TransportMode.class)
  void itsRowsAreNotReadAndItsMemoryIsFreedWithTheShuffle(TransportMode mode) throws Exception {
    try (TestCluster cluster = new TestCluster(folder).mode(mode)) {
      ExecutorExchange one = cluster.open("one");
      ExecutorExchange other = cluster.open("other");
      write(one, WINNER, 2, SIZES);
      write(other, LOSER, 2, SIZES);
      for (ExecutorExchange reader : List.of(one, other)) {
        assertThat(readAll(reader, List.of(request("one", WINNER, 0, 2, 30_000))))
            .containsExactlyInAnyOrderElementsOf(expected(1, 10, 11, 0, 2, SIZES));
      }
      assertThat(other.statistics().arena().usedBytes()).isGreaterThanOrEqualTo(30_000);
      cluster.removeShuffle(1);
      TestCluster.assertNothingHeld(one);
      TestCluster.assertNothingHeld(other);
    }
  }
}
