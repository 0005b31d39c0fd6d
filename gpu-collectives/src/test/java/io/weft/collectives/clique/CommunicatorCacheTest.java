package io.weft.collectives.clique;

import static io.weft.collectives.clique.CliqueProcesses.clique;
import static io.weft.collectives.clique.CliqueProcesses.each;
import static io.weft.collectives.clique.CliqueProcesses.join;
import static io.weft.collectives.clique.CliqueProcesses.member;
import static io.weft.collectives.clique.CliqueProcesses.members;
import static io.weft.collectives.clique.CliqueProcesses.start;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;
import static org.awaitility.Awaitility.await;

import io.weft.collectives.Bootstrap;
import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveException.Kind;
import io.weft.collectives.Communicator;
import io.weft.collectives.CommunicatorFactory;
import io.weft.collectives.CommunicatorOptions;
import io.weft.collectives.clique.CliqueKey.CliqueMember;
import io.weft.collectives.host.HostCommunicators;
import io.weft.collectives.host.HostOptions;
import io.weft.collectives.local.LocalCommunicator;
import io.weft.logging.CapturedLogs;
import java.io.IOException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.slf4j.LoggerFactory;

class CommunicatorCacheTest {
  private static final List<Integer> THREE = List.of(0, 1, 2);

  private static CliqueStatistics statistics(CliqueProcesses members, int process) {
    return members.cache(process).statistics();
  }

  @Test
  void secondAcquisitionReusesOnAllRanks(@TempDir Path folder) {
    CommunicatorFactory factory = new HostCommunicators(HostOptions.defaults().withFolder(folder));
    try (CliqueProcesses members = new CliqueProcesses(3, factory, CliqueProcesses.TIMEOUT)) {
      CliqueKey key = clique("a", 0, 1, 2);
      List<Boolean> reused =
          each(
              THREE,
              process -> {
                Communicator first;
                try (CliqueLease lease = members.acquire(key, process, "one")) {
                  CliqueProcesses.use(lease);
                  first = lease.communicator();
                }
                try (CliqueLease lease = members.acquire(key, process, "two")) {
                  CliqueProcesses.use(lease);
                  assertThat(lease.communicator()).isSameAs(first);
                  return lease.isReused();
                }
              });
      assertThat(reused).containsOnly(true);
      for (int process : THREE) {
        assertThat(statistics(members, process))
            .isEqualTo(new CliqueStatistics(2, 1, 1, 0, 0, 0, 0, 1));
      }
    }
  }

  @Test
  void purposesAndOrdersHaveTheirOwnCommunicators() {
    try (CliqueProcesses members = new CliqueProcesses(2)) {
      List<CliqueKey> keys = List.of(clique("a", 0, 1), clique("b", 0, 1), clique("a", 1, 0));
      each(
          List.of(0, 1),
          process -> {
            for (CliqueKey key : keys) {
              try (CliqueLease lease = members.acquire(key, process, "only")) {
                assertThat(lease.communicator().rank()).isEqualTo(key.rankOf(member(process)));
                CliqueProcesses.use(lease);
              }
            }
            return null;
          });
      assertThat(statistics(members, 0).open()).isEqualTo(3);
      assertThat(members.cache(0).idle()).containsExactlyElementsOf(keys);
    }
  }

  /** Trap: one rank has a cached communicator and another has none; each waits for the other. */
  @Test
  void communicatorLostOnOneRankIsRecreatedOnAll() {
    try (CliqueProcesses members = new CliqueProcesses(3)) {
      CliqueKey key = clique("a", 0, 1, 2);
      List<Communicator> first =
          each(
              THREE,
              process -> {
                try (CliqueLease lease = members.acquire(key, process, "one")) {
                  return lease.communicator();
                }
              });
      // Process 1 has lost its communicator, like a process that restarted under the same name.
      try (CommunicatorCache empty =
          new CommunicatorCache(
              LocalCommunicator::create,
              CommunicatorOptions.DEFAULT.withTimeout(CliqueProcesses.TIMEOUT))) {
        each(
            THREE,
            process -> {
              CommunicatorCache cache = process == 1 ? empty : members.cache(process);
              try (CliqueLease lease = members.acquire(key, member(process), cache, "two")) {
                assertThat(lease.isReused()).isFalse();
                assertThat(lease.communicator()).isNotSameAs(first.get(process));
                CliqueProcesses.use(lease);
              }
              return null;
            });
      }
      assertThat(first.get(0).failure()).isPresent();
      assertThat(statistics(members, 0)).isEqualTo(new CliqueStatistics(2, 0, 2, 0, 1, 0, 0, 1));
    }
  }

  /** Trap: a rank that fails early leaves the others waiting for it. */
  @Test
  void failureWhileCreatingReachesAllMembers() {
    AtomicBoolean healthy = new AtomicBoolean();
    CommunicatorFactory factory =
        (bootstrap, options) -> {
          Communicator communicator = LocalCommunicator.create(bootstrap, options);
          if (bootstrap.rank() == 2 && !healthy.get()) {
            communicator.close();
            throw new IllegalStateException("no memory");
          }
          return communicator;
        };
    try (CliqueProcesses members = new CliqueProcesses(3, factory, CliqueProcesses.TIMEOUT)) {
      CliqueKey key = clique("a", 0, 1, 2);
      List<CollectiveException> failures =
          each(
              THREE,
              process ->
                  catchThrowableOfType(
                      CollectiveException.class, () -> members.acquire(key, process, "one")));
      assertThat(failures)
          .allSatisfy(failure -> assertThat(failure).hasMessageContaining("no memory"))
          .allSatisfy(failure -> assertThat(failure.ranks()).containsExactly(2));
      healthy.set(true);
      each(
          THREE,
          process -> {
            try (CliqueLease lease = members.acquire(key, process, "two")) {
              CliqueProcesses.use(lease);
            }
            return null;
          });
      assertThat(statistics(members, 2).open()).isEqualTo(1);
    }
  }

  @Test
  void nonParticipantIsNeverAwaited() {
    try (CliqueProcesses members = new CliqueProcesses(4)) {
      CliqueKey key = clique("a", 1, 3);
      each(
          List.of(1, 3),
          process -> {
            try (CliqueLease lease = members.acquire(key, process, "one")) {
              CliqueProcesses.use(lease);
            }
            return null;
          });
      assertThat(statistics(members, 0).requests()).isZero();
      assertThatThrownBy(
              () -> members.cache(0).acquire(key, member(0), members.bootstrap(key, 0, "stranger")))
          .hasMessageContaining("not a member");
      CliqueKey larger = clique("a", 0, 1, 2);
      assertThatThrownBy(
              () -> members.cache(0).acquire(larger, member(0), members.bootstrap(key, 0, "wrong")))
          .hasMessageContaining("only members take part");
    }
  }

  @Test
  void missingMemberIsNamedInTime() {
    try (CliqueProcesses members =
        new CliqueProcesses(3, LocalCommunicator::create, Duration.ofSeconds(3))) {
      CliqueKey key = clique("a", 0, 1, 2);
      List<CollectiveException> failures =
          each(
              List.of(0, 2),
              process ->
                  catchThrowableOfType(
                      CollectiveException.class, () -> members.acquire(key, process, "one")));
      assertThat(failures)
          .allSatisfy(failure -> assertThat(failure.kind()).isEqualTo(Kind.TIMEOUT))
          .allSatisfy(failure -> assertThat(failure.ranks()).containsExactly(1));
    }
  }

  @Test
  void slowAcquisitionIsWarnedAbout() {
    CapturedLogs.clear();
    CliqueKey key = clique("slow to arrive", 0, 1);
    CommunicatorOptions options = CommunicatorOptions.DEFAULT.withTimeout(CliqueProcesses.TIMEOUT);
    try (CliqueProcesses members = new CliqueProcesses(2);
        CommunicatorCache impatient =
            new CommunicatorCache(
                LocalCommunicator::create,
                options,
                LoggerFactory.getLogger("impatient"),
                Duration.ofMillis(20))) {
      CompletableFuture<Void> early =
          start(
              0,
              process -> {
                members.acquire(key, member(0), impatient, "one").close();
                return null;
              });
      await()
          .atMost(CliqueProcesses.TIMEOUT)
          .until(
              () ->
                  CapturedLogs.lines().stream()
                      .anyMatch(
                          line -> line.startsWith("WARN") && line.contains("slow to arrive")));
      members.acquire(key, 1, "one").close();
      join(early);
    }
  }

  /** Two acquisitions of one clique run at once; the members start them in opposite orders. */
  @Test
  void loserOfARaceDiscardsAndBothAcquisitionsSucceed() {
    for (int repeat = 0; repeat < 30; repeat++) {
      try (CliqueProcesses members = new CliqueProcesses(2)) {
        CliqueKey key = clique("a", 0, 1);
        List<CompletableFuture<Void>> all = new ArrayList<>();
        for (int process = 0; process < 2; process++) {
          for (String rendezvous : process == 0 ? List.of("x", "y") : List.of("y", "x")) {
            all.add(
                start(
                    process,
                    self -> {
                      try (CliqueLease lease = members.acquire(key, self, rendezvous)) {
                        // Both leases may use one communicator; barriers match in any order.
                        CliqueProcesses.use(lease);
                      }
                      return null;
                    }));
          }
        }
        all.forEach(CliqueProcesses::join);
        for (int process = 0; process < 2; process++) {
          CliqueStatistics statistics = statistics(members, process);
          assertThat(statistics.requests()).isEqualTo(2);
          assertThat(statistics.open()).isLessThanOrEqualTo(1);
          assertThat(statistics.created() + statistics.reused()).isEqualTo(2);
        }
        each(
            List.of(0, 1),
            process -> {
              try (CliqueLease lease = members.acquire(key, process, "after")) {
                CliqueProcesses.use(lease);
              }
              return null;
            });
      }
    }
  }

  /** Trap: the abort of one communicator waits for work that the abort of another would end. */
  @Test
  void failedIncarnationAbortsItsCommunicatorsConcurrentlyAndErasesThem() {
    CountDownLatch aborts = new CountDownLatch(3);
    CommunicatorFactory factory =
        (bootstrap, options) ->
            abortingTogether(LocalCommunicator.create(bootstrap, options), aborts);
    try (CliqueProcesses members = new CliqueProcesses(1, factory, CliqueProcesses.TIMEOUT)) {
      List<CliqueLease> leases = new ArrayList<>();
      for (String purpose : List.of("a", "b", "c")) {
        leases.add(members.acquire(clique(purpose, 0), 0, "one"));
      }
      members.cache(0).fail("executor-0", "another incarnation", "not ours");
      assertThat(aborts.getCount()).isEqualTo(3);
      members.cache(0).fail("executor-0", "first", "the executor was lost");
      assertThat(aborts.getCount()).isZero();
      for (CliqueLease lease : leases) {
        assertThat(lease.communicator().failure().orElseThrow())
            .hasMessageContaining("the executor was lost");
        lease.close();
      }
      assertThat(statistics(members, 0).aborted()).isEqualTo(3);
      assertThat(statistics(members, 0).open()).isZero();
    }
  }

  /** A communicator whose abort returns only when all have been aborted. */
  private static Communicator abortingTogether(Communicator communicator, CountDownLatch aborts) {
    return (Communicator)
        Proxy.newProxyInstance(
            CommunicatorCacheTest.class.getClassLoader(),
            new Class<?>[] {Communicator.class},
            (proxy, method, arguments) -> {
              if (method.getName().equals("abort")) {
                aborts.countDown();
                assertThat(aborts.await(20, TimeUnit.SECONDS)).isTrue();
              }
              try {
                return method.invoke(communicator, arguments);
              } catch (InvocationTargetException e) {
                throw e.getCause();
              }
            });
  }

  @Test
  void staleIncarnationIsRefusedOnAllMembersAndItsSuccessorAccepted() {
    try (CliqueProcesses members = new CliqueProcesses(3)) {
      CliqueKey stale = clique("a", 0, 1, 2);
      members.cache(0).fail("executor-1", "first", "heartbeats stopped");
      List<CollectiveException> failures =
          each(
              THREE,
              process ->
                  catchThrowableOfType(
                      CollectiveException.class, () -> members.acquire(stale, process, "one")));
      assertThat(failures)
          .allSatisfy(failure -> assertThat(failure.kind()).isEqualTo(Kind.DEAD))
          .allSatisfy(failure -> assertThat(failure.ranks()).containsExactly(1))
          .allSatisfy(failure -> assertThat(failure).hasMessageContaining("heartbeats stopped"));
      assertThat(statistics(members, 0).refused()).isEqualTo(1);
      CliqueKey next = new CliqueKey(List.of(member(0), member(1, "second"), member(2)), "a");
      each(
          THREE,
          process -> {
            CliqueMember self = next.members().get(process);
            try (CliqueLease lease = members.acquire(next, self, members.cache(process), "two")) {
              CliqueProcesses.use(lease);
            }
            return null;
          });
    }
  }

  /**
   * Trap: a process that ends while its communicator is being created stays in the cache for ever.
   */
  @Test
  void memberThatFailsWhileTheCommunicatorIsMadeIsNotCached() {
    CliqueProcesses[] all = new CliqueProcesses[1];
    CommunicatorFactory factory =
        (bootstrap, options) -> {
          Communicator communicator = LocalCommunicator.create(bootstrap, options);
          if (bootstrap.rank() == 0) {
            all[0].cache(0).fail("executor-1", "first", "lost meanwhile");
          }
          return communicator;
        };
    try (CliqueProcesses members = new CliqueProcesses(2, factory, CliqueProcesses.TIMEOUT)) {
      all[0] = members;
      CliqueKey key = clique("a", 0, 1);
      List<CollectiveException> failures =
          each(
              List.of(0, 1),
              process ->
                  catchThrowableOfType(
                      CollectiveException.class, () -> members.acquire(key, process, "one")));
      assertThat(failures)
          .allSatisfy(failure -> assertThat(failure).hasMessageContaining("lost meanwhile"));
      assertThat(statistics(members, 0).open()).isZero();
      assertThat(statistics(members, 1).open()).isZero();
    }
  }

  @Test
  void evictionNeedsAllMembers() {
    try (CliqueProcesses members = new CliqueProcesses(2)) {
      CliqueKey key = clique("a", 0, 1);
      List<CliqueLease> leases =
          each(List.of(0, 1), process -> members.acquire(key, process, "one"));
      leases.get(0).close();
      assertThat(evict(members, key, "busy")).containsOnly(false);
      assertThat(leases.get(1).communicator().failure()).isEmpty();
      leases.get(1).close();
      assertThat(evict(members, key, "idle")).containsOnly(true);
      assertThat(leases.get(1).communicator().failure()).isPresent();
      assertThat(statistics(members, 0).evicted()).isEqualTo(1);
      assertThat(statistics(members, 1).open()).isZero();
    }
  }

  private static List<Boolean> evict(CliqueProcesses members, CliqueKey key, String rendezvous) {
    return each(
        List.of(0, 1),
        process -> {
          try (Bootstrap end = members.bootstrap(key, process, rendezvous)) {
            return members.cache(process).evict(key, member(process), end);
          }
        });
  }

  @Test
  void leasedCommunicatorOutlivesTheCache() {
    CliqueProcesses members = new CliqueProcesses(1);
    CliqueLease lease = members.acquire(clique("a", 0), 0, "one");
    members.close();
    CliqueProcesses.use(lease);
    lease.close();
    lease.close();
    assertThat(lease.communicator().failure()).isPresent();
    assertThatThrownBy(() -> members.acquire(clique("a", 0), 0, "two"))
        .hasMessageContaining("closed");
  }

  /** Trap: A{x,y} then B{y,x} on one member, and the reverse order on the other. */
  @Test
  void membersThatRequestInCrossedOrderAcquireInOneOrder() {
    try (CliqueProcesses members = new CliqueProcesses(3)) {
      each(
          THREE,
          process -> {
            CliqueRequests requests = new CliqueRequests();
            List<List<CliqueMember>> wanted =
                new ArrayList<>(List.of(members(0, 1, 2), members(0, 1)));
            if (process == 1) {
              Collections.reverse(wanted);
            }
            for (List<CliqueMember> clique : wanted) {
              if (clique.contains(member(process))) {
                requests.add(clique, "a");
              }
            }
            List<CliqueLease> leases =
                members
                    .cache(process)
                    .acquireAll(
                        requests,
                        member(process),
                        (key, rank) -> members.bootstrap(key, rank, "a"));
            leases.forEach(CliqueProcesses::use);
            leases.forEach(CliqueLease::close);
            return null;
          });
    }
  }

  @Test
  void failedAcquisitionReleasesEarlierLeases() {
    try (CliqueProcesses members = new CliqueProcesses(2)) {
      CliqueRequests requests =
          new CliqueRequests().add(members(0), "fine").add(members(0), "refused");
      assertThatThrownBy(
              () ->
                  members
                      .cache(0)
                      .acquireAll(
                          requests,
                          member(0),
                          (key, rank) -> {
                            if (key.purpose().equals("refused")) {
                              throw new IOException("no address");
                            }
                            return members.bootstrap(key, rank, "a");
                          }))
          .hasMessageContaining("no address");
      assertThat(members.cache(0).idle()).containsExactly(clique("fine", 0));
    }
  }
}
