package io.weft.collectives.bootstrap;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.weft.collectives.CollectiveException;
import io.weft.device.Deadline;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.slf4j.Logger;

class ThreadRendezvousTest {
  private static Deadline in(long millis) {
    return Deadline.after(Duration.ofMillis(millis));
  }

  @Test
  void lastParticipantComputesOnceForAll() throws Exception {
    AtomicInteger computed = new AtomicInteger();
    ThreadRendezvous<Integer, Integer> sum =
        new ThreadRendezvous<>(
            "sum",
            4,
            values -> {
              computed.incrementAndGet();
              return values.stream().mapToInt(Integer::intValue).sum();
            });
    ExecutorService threads = Executors.newFixedThreadPool(4);
    try {
      List<Future<Integer>> results = new CopyOnWriteArrayList<>();
      for (int i = 0; i < 4; i++) {
        int participant = i;
        results.add(threads.submit(() -> sum.arrive(participant, participant * 10, in(10_000))));
      }
      for (Future<Integer> result : results) {
        assertThat(result.get()).isEqualTo(60);
      }
      assertThat(computed).hasValue(1);
    } finally {
      threads.shutdownNow();
    }
  }

  @Test
  void failureOfOneReachesWaitingAndLaterParticipants() {
    ThreadRendezvous<String, String> rendezvous =
        new ThreadRendezvous<>("clique", 3, List::toString);
    CompletableFuture<String> waiting =
        CompletableFuture.supplyAsync(() -> rendezvous.arrive(0, "a", in(10_000)));
    rendezvous.arriveFailed(2, new IllegalStateException("no memory"));
    assertThatThrownBy(waiting::join)
        .isInstanceOf(CompletionException.class)
        .hasMessageContaining("clique: rank 2 failed: no memory");
    assertThatThrownBy(() -> rendezvous.arrive(1, "b", in(10_000)))
        .isInstanceOf(CollectiveException.class)
        .hasMessageContaining("rank 2 failed");
  }

  @Test
  void missingParticipantsAreNamed() {
    ThreadRendezvous<String, String> rendezvous =
        new ThreadRendezvous<>("clique", 4, List::toString);
    assertThatThrownBy(() -> rendezvous.arrive(2, "c", in(200)))
        .isInstanceOfSatisfying(
            CollectiveException.class,
            failure -> assertThat(failure.ranks()).isEqualTo(List.of(0, 1, 3)));
    assertThatThrownBy(() -> rendezvous.arrive(0, "a", in(10_000)))
        .hasMessageContaining("ranks 0, 1, 3 did not arrive within 200 ms");
  }

  @Test
  void arrivingTwiceIsAnError() {
    ThreadRendezvous<String, String> rendezvous =
        new ThreadRendezvous<>("clique", 2, List::toString);
    AtomicReference<Thread> first = new AtomicReference<>();
    CompletableFuture<String> one =
        CompletableFuture.supplyAsync(
            () -> {
              first.set(Thread.currentThread());
              return rendezvous.arrive(0, "a", in(60_000));
            });
    await()
        .until(() -> first.get() != null && first.get().getState() == Thread.State.TIMED_WAITING);
    assertThatThrownBy(() -> rendezvous.arrive(0, "again", in(1)))
        .hasMessageContaining("rank 0 arrived twice");
    rendezvous.arrive(1, "b", in(60_000));
    assertThat(one.join()).isEqualTo("[a, b]");
  }

  @Test
  void failingCombinationFailsAll() {
    ThreadRendezvous<String, String> rendezvous =
        new ThreadRendezvous<>(
            "clique",
            1,
            values -> {
              throw new IllegalStateException("cannot combine");
            });
    assertThatThrownBy(() -> rendezvous.arrive(0, "a", in(1000)))
        .isInstanceOf(CollectiveException.class)
        .hasMessageContaining("cannot combine");
  }

  @Test
  void warnsOnceAboutMissingParticipants() {
    List<String> warnings = new CopyOnWriteArrayList<>();
    Logger log =
        (Logger)
            Proxy.newProxyInstance(
                Logger.class.getClassLoader(),
                new Class<?>[] {Logger.class},
                (proxy, method, arguments) -> {
                  if (method.getName().equals("warn")) {
                    warnings.add(Arrays.deepToString(arguments));
                  }
                  return method.getReturnType() == boolean.class ? true : null;
                });
    ThreadRendezvous<String, String> rendezvous =
        new ThreadRendezvous<>("clique", 3, List::toString, log, Duration.ofMillis(20));
    CompletableFuture<String> one =
        CompletableFuture.supplyAsync(() -> rendezvous.arrive(0, "a", in(10_000)));
    await().until(() -> !warnings.isEmpty());
    CompletableFuture<String> two =
        CompletableFuture.supplyAsync(() -> rendezvous.arrive(2, "c", in(10_000)));
    rendezvous.arrive(1, "b", in(10_000));
    assertThat(one.join()).isEqualTo(two.join());
    assertThat(warnings).singleElement().asString().contains("clique", "ranks 1, 2");
  }
}
