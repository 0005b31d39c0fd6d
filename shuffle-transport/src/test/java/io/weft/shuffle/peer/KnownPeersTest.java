package io.weft.shuffle.peer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.shuffle.peer.PeerAddress.KnownPeers;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.Test;

/** What the tasks of one executor ask the directory. */
class KnownPeersTest {
  private static final Set<String> THREE = Set.of("1", "2", "3");

  private final List<Set<String>> asked = Collections.synchronizedList(new ArrayList<>());

  private static PeerAddress address(String id) {
    return new PeerAddress(id, "00c0ffee", "host-" + id, 1, "/folder", "token", "boot", "1");
  }

  private static Map<String, PeerAddress> addresses(Set<String> ids) {
    return ids.stream().collect(Collectors.toMap(Function.identity(), KnownPeersTest::address));
  }

  private KnownPeers peers(PeerDirectory directory) {
    return new KnownPeers(
        ids -> {
          asked.add(new TreeSet<>(ids));
          return directory.lookup(ids);
        });
  }

  @Test
  void allPeersOfATaskAreOneRequestAndLaterTasksNeedNone() throws IOException {
    KnownPeers peers = peers(KnownPeersTest::addresses);
    assertThat(peers.find(THREE)).isEqualTo(addresses(THREE));
    assertThat(peers.find("2")).isEqualTo(address("2"));
    assertThat(peers.find(Set.of())).isEmpty();
    assertThat(peers.find(Set.of("3", "4"))).isEqualTo(addresses(Set.of("3", "4")));
    assertThat(asked).containsExactly(new TreeSet<>(THREE), Set.of("4"));
  }

  /** Executors come and go for months. */
  @Test
  void addressesDoNotGrowWithAllExecutorsEver() throws IOException {
    KnownPeers peers = peers(KnownPeersTest::addresses);
    for (int id = 0; id < 3 * KnownPeers.MAX_KNOWN; id++) {
      String executor = Integer.toString(id);
      assertThat(peers.find(executor)).isEqualTo(address(executor));
      assertThat(peers.size()).isLessThanOrEqualTo(KnownPeers.MAX_KNOWN);
    }
    String last = Integer.toString(3 * KnownPeers.MAX_KNOWN - 1);
    int before = asked.size();
    assertThat(peers.find(last)).isEqualTo(address(last));
    assertThat(asked).hasSize(before);
  }

  @Test
  void tasksJoinARequestInFlight() throws Exception {
    CountDownLatch answered = new CountDownLatch(1);
    KnownPeers peers =
        peers(
            ids -> {
              await(answered);
              return addresses(ids);
            });
    List<CompletableFuture<Map<String, PeerAddress>>> tasks = new ArrayList<>();
    List<Thread> threads = new ArrayList<>();
    for (int i = 0; i < 8; i++) {
      CompletableFuture<Map<String, PeerAddress>> task = new CompletableFuture<>();
      tasks.add(task);
      threads.add(start(task, peers, THREE));
    }
    awaitWaiting(threads);
    answered.countDown();
    for (CompletableFuture<Map<String, PeerAddress>> task : tasks) {
      assertThat(task.get(30, TimeUnit.SECONDS)).isEqualTo(addresses(THREE));
    }
    // Tasks that begin at the same time may share the executors among their requests.
    assertThat(asked.stream().flatMap(Set::stream)).containsExactlyInAnyOrderElementsOf(THREE);
  }

  @Test
  void anInterruptedTaskDoesNotFailTheOthers() throws Exception {
    CountDownLatch never = new CountDownLatch(1);
    KnownPeers peers =
        peers(
            ids -> {
              if (asked.size() == 1) {
                await(never);
              }
              return addresses(ids);
            });
    CompletableFuture<Map<String, PeerAddress>> first = new CompletableFuture<>();
    Thread killed = start(first, peers, THREE);
    awaitWaiting(List.of(killed));
    CompletableFuture<Map<String, PeerAddress>> second = new CompletableFuture<>();
    awaitWaiting(List.of(start(second, peers, Set.of("1", "2"))));
    killed.interrupt();
    assertThat(second.get(30, TimeUnit.SECONDS)).isEqualTo(addresses(Set.of("1", "2")));
    assertThat(first)
        .failsWithin(30, TimeUnit.SECONDS)
        .withThrowableThat()
        .withCauseInstanceOf(InterruptedIOException.class);
    assertThat(asked).containsExactly(new TreeSet<>(THREE), Set.of("1", "2"));
  }

  @Test
  void aLateDirectoryFailsAllThatWaitAndIsAskedAgain() throws IOException {
    KnownPeers peers =
        peers(
            ids -> {
              if (asked.size() == 1) {
                throw new IOException("the driver is busy");
              }
              return addresses(ids);
            });
    assertThatThrownBy(() -> peers.find(THREE)).hasMessage("the driver is busy");
    assertThat(peers.find(THREE)).isEqualTo(addresses(THREE));
  }

  @Test
  void endedExecutorsAreMissingAndAskedAgain() throws IOException {
    KnownPeers peers = peers(ids -> Map.of("1", address("1")));
    assertThat(peers.find(Set.of("1", "2"))).isEqualTo(Map.of("1", address("1")));
    assertThatThrownBy(() -> peers.find("2"))
        .isInstanceOf(IOException.class)
        .hasMessage("executor 2 has ended: it has no address");
    assertThat(asked).containsExactly(new TreeSet<>(Set.of("1", "2")), Set.of("2"));
  }

  @Test
  void aForgottenAddressIsAskedForAgain() throws IOException {
    KnownPeers peers = peers(KnownPeersTest::addresses);
    PeerAddress first = peers.find("1");
    peers.forget(address("2"));
    peers.forget(new PeerAddress("1", "older", "host", 1, "", "", "", ""));
    assertThat(peers.find("1")).isSameAs(first);
    peers.forget(first);
    assertThat(peers.find("1")).isEqualTo(first);
    assertThat(asked).hasSize(2);
  }

  private static Thread start(
      CompletableFuture<Map<String, PeerAddress>> task, KnownPeers peers, Set<String> ids) {
    Thread thread =
        new Thread(
            () -> {
              try {
                task.complete(peers.find(ids));
              } catch (IOException | RuntimeException e) {
                task.completeExceptionally(e);
              }
            });
    thread.setDaemon(true);
    thread.start();
    return thread;
  }

  private static void await(CountDownLatch latch) throws InterruptedIOException {
    try {
      assertThat(latch.await(60, TimeUnit.SECONDS)).isTrue();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new InterruptedIOException();
    }
  }

  private static void awaitWaiting(List<Thread> threads) {
    Awaitility.await()
        .atMost(Duration.ofSeconds(60))
        .until(
            () ->
                threads.stream()
                    .map(Thread::getState)
                    .allMatch(
                        state ->
                            state == Thread.State.WAITING || state == Thread.State.TIMED_WAITING));
  }
}
