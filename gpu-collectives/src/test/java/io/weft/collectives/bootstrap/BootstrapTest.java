package io.weft.collectives.bootstrap;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.weft.collectives.Bootstrap;
import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveException.Kind;
import io.weft.collectives.UniqueId;
import io.weft.device.Deadline;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Tests the rounds of every bootstrap. */
class BootstrapTest {
  /** The implementations. */
  enum Way {
    THREADS,
    FILES,
    SOCKETS
  }

  private static final int NRANKS = 4;

  /** The timeout of a test with a missing rank; long enough for the others on a busy machine. */
  private static final Duration SHORT = Duration.ofSeconds(3);

  @TempDir Path folder;

  private final ExecutorService threads = Executors.newCachedThreadPool();

  @AfterEach
  void stopThreads() {
    threads.shutdownNow();
  }

  private List<Bootstrap> open(Way way) throws IOException {
    List<Bootstrap> ends = new ArrayList<>();
    switch (way) {
      case THREADS -> ends.addAll(ThreadBootstrap.open(NRANKS));
      case FILES -> {
        UniqueId id = UniqueId.create();
        for (int rank = 0; rank < NRANKS; rank++) {
          ends.add(FileBootstrap.open(folder, id, rank, NRANKS));
        }
      }
      case SOCKETS -> {
        ends.add(SocketBootstrap.listen("127.0.0.1", NRANKS));
        UniqueId id = UniqueId.decode(ends.get(0).id().encode());
        for (int rank = 1; rank < NRANKS; rank++) {
          ends.add(SocketBootstrap.join(id, rank, NRANKS));
        }
      }
    }
    return ends;
  }

  /** The work of one rank with its end. */
  private interface Part<T> {
    T run(Bootstrap end) throws Exception;
  }

  private <T> List<T> onAll(List<Bootstrap> ends, Part<T> part) throws Exception {
    List<Future<T>> futures = new ArrayList<>();
    for (Bootstrap end : ends) {
      futures.add(
          threads.submit(
              () -> {
                try (end) {
                  return part.run(end);
                }
              }));
    }
    List<T> results = new ArrayList<>();
    for (Future<T> future : futures) {
      results.add(future.get(60, TimeUnit.SECONDS));
    }
    return results;
  }

  private static List<String> exchange(Bootstrap end, String round, String text, Duration limit) {
    return end.exchange(round, text.getBytes(UTF_8), Deadline.after(limit)).stream()
        .map(bytes -> new String(bytes, UTF_8))
        .toList();
  }

  @ParameterizedTest
  @EnumSource
  void everyRoundGivesAllMessagesInOrder(Way way) throws Exception {
    List<List<String>> seen =
        onAll(
            open(way),
            end -> {
              List<String> all = new ArrayList<>();
              for (int round = 0; round < 5; round++) {
                String mine = "r" + end.rank() + "/" + round + "x".repeat(round * 20_000);
                all.addAll(exchange(end, "round" + round, mine, Duration.ofSeconds(30)));
              }
              return all;
            });
    List<String> expected = new ArrayList<>();
    for (int round = 0; round < 5; round++) {
      for (int rank = 0; rank < NRANKS; rank++) {
        expected.add("r" + rank + "/" + round + "x".repeat(round * 20_000));
      }
    }
    assertThat(seen).hasSize(NRANKS).allSatisfy(all -> assertThat(all).isEqualTo(expected));
  }

  @ParameterizedTest
  @EnumSource
  void missingRankIsNamedByAll(Way way) throws Exception {
    List<CollectiveException> failures =
        onAll(
            open(way),
            end ->
                end.rank() == 2
                    ? null
                    : catchThrowableOfType(
                        CollectiveException.class, () -> exchange(end, "first", "here", SHORT)));
    failures.remove(2);
    assertThat(failures)
        .allSatisfy(
            failure -> {
              assertThat(failure.kind()).isEqualTo(Kind.TIMEOUT);
              assertThat(failure.ranks()).containsExactly(2);
              assertThat(failure).hasMessageContaining("rank 2");
            });
  }

  /** Over sockets the end of a rank is detected at once, long before the deadline. */
  @Test
  void rankThatEndsIsNamedByAll() throws Exception {
    List<CollectiveException> failures =
        onAll(
            open(Way.SOCKETS),
            end -> {
              assertThat(exchange(end, "first", "here", Duration.ofSeconds(30))).hasSize(NRANKS);
              return end.rank() == 3
                  ? null
                  : catchThrowableOfType(
                      CollectiveException.class,
                      () -> exchange(end, "second", "here", Duration.ofMinutes(5)));
            });
    failures.remove(3);
    assertThat(failures)
        .allSatisfy(
            failure -> {
              assertThat(failure.kind()).isEqualTo(Kind.DEAD);
              assertThat(failure.ranks()).containsExactly(3);
            });
  }

  @Test
  void rankInAnotherRoundIsAnErrorOnAll() throws Exception {
    List<CollectiveException> failures =
        onAll(
            open(Way.SOCKETS),
            end ->
                catchThrowableOfType(
                    CollectiveException.class,
                    () ->
                        exchange(
                            end,
                            end.rank() == 1 ? "other" : "first",
                            "here",
                            Duration.ofSeconds(30))));
    assertThat(failures)
        .allSatisfy(
            failure -> {
              assertThat(failure.kind()).isEqualTo(Kind.MISMATCH);
              assertThat(failure.ranks()).containsExactly(0, 1);
              assertThat(failure).hasMessageContaining("other").hasMessageContaining("first");
            });
  }

  @Test
  void oneRankExchangesWithItself() throws Exception {
    try (Bootstrap alone = SocketBootstrap.listen("127.0.0.1", 1)) {
      assertThat(exchange(alone, "first", "me", Duration.ofSeconds(30))).containsExactly("me");
    }
  }

  @Test
  void wrongSecretIsRefused() throws Exception {
    try (Bootstrap root = SocketBootstrap.listen("127.0.0.1", 2);
        Bootstrap stranger =
            SocketBootstrap.join(UniqueId.create(root.id().rootAddress().orElseThrow()), 1, 2)) {
      Future<CollectiveException> refused =
          threads.submit(
              () ->
                  catchThrowableOfType(
                      CollectiveException.class,
                      () -> exchange(stranger, "first", "let me in", Duration.ofSeconds(30))));
      assertThatThrownBy(() -> exchange(root, "first", "secret", SHORT))
          .isInstanceOf(CollectiveException.class)
          .hasMessageContaining("rank 1 did not connect");
      assertThat(refused.get(60, TimeUnit.SECONDS).kind()).isEqualTo(Kind.DEAD);
    }
  }

  @Test
  void idWithoutAnAddressAndWrongRanksAreRefused() {
    assertThatThrownBy(() -> SocketBootstrap.join(UniqueId.create(), 1, 2))
        .hasMessageContaining("has no address of the root");
    assertThatThrownBy(() -> SocketBootstrap.join(UniqueId.create(), 0, 2))
        .hasMessageContaining("rank 0 cannot join");
    assertThatThrownBy(() -> SocketBootstrap.listen("0.0.0.0", 2))
        .hasMessageContaining("not an address");
  }
}
