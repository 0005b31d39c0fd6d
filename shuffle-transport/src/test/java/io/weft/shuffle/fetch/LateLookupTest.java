package io.weft.shuffle.fetch;

import static io.weft.support.TestBlocks.request;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.shuffle.ExecutorExchange;
import io.weft.shuffle.store.BlockKey;
import io.weft.support.TestCluster;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Readers and the directory of addresses. */
class LateLookupTest {
  private static final List<BlockRequest> REQUESTS =
      List.of(
          request("1", new BlockKey(1, 10), 0, 1, 100),
          request("1", new BlockKey(1, 11), 0, 1, 100),
          request("2", new BlockKey(1, 20), 0, 1, 100),
          request("3", new BlockKey(1, 30), 0, 1, 100));

  @TempDir Path folder;

  /** Spark would discard the outputs of a healthy executor after a fetch failure. */
  @Test
  void aDriverThatDoesNotAnswerIsNoFetchFailure() throws Exception {
    IOException late = new IOException("executor reader got no answer of the driver");
    try (TestCluster cluster = new TestCluster(folder);
        ExecutorExchange exchange =
            ExecutorExchange.open(
                cluster.options("reader"),
                executors -> {
                  throw late;
                });
        ChunkReader reader = exchange.read(REQUESTS, FetchListener.NONE)) {
      assertThatThrownBy(reader::next)
          .isInstanceOf(UncheckedIOException.class)
          .hasMessage(late.getMessage())
          .rootCause()
          .isSameAs(late);
      assertThatThrownBy(reader::next)
          .as("a user's code has caught the exception, and the partition has not ended")
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("its blocks are incomplete");
    }
  }

  /** An executor without an address has ended, so its blocks must be computed again. */
  @Test
  void allPeersAreLookedUpAtOnceAndAnEndedOneIsAFetchFailure() throws Exception {
    List<Set<String>> asked = new CopyOnWriteArrayList<>();
    try (TestCluster cluster = new TestCluster(folder);
        ExecutorExchange exchange =
            ExecutorExchange.open(
                cluster.options("reader"),
                executors -> {
                  asked.add(Set.copyOf(executors));
                  return Map.of();
                });
        ChunkReader reader = exchange.read(REQUESTS, FetchListener.NONE)) {
      assertThatThrownBy(reader::next)
          .isInstanceOf(BlockFetchException.class)
          .hasMessageContaining("executor reader cannot read shuffle 1 map 10")
          .hasMessageContaining("of executor 1 by no path")
          .hasMessageContaining("the executor has ended");
    }
    assertThat(asked).containsExactly(Set.of("1", "2", "3"));
  }
}
