package io.weft.collectives.clique;

import static io.weft.collectives.clique.CliqueProcesses.clique;
import static io.weft.collectives.clique.CliqueProcesses.each;
import static io.weft.collectives.clique.CliqueProcesses.join;
import static io.weft.collectives.clique.CliqueProcesses.member;
import static io.weft.collectives.clique.CliqueProcesses.start;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;
import static org.awaitility.Awaitility.await;

import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveException.Kind;
import io.weft.collectives.Communicator;
import io.weft.collectives.CommunicatorFactory;
import io.weft.collectives.CommunicatorOptions;
import io.weft.collectives.clique.CliqueKey.CliqueMember;
import io.weft.collectives.local.LocalCommunicator;
import io.weft.logging.CapturedLogs;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Test;
import org.slf4j.LoggerFactory;

class CliqueCommunicatorsTest {
  private static final List<Integer> THREE = List.of(0, 1, 2);

  private static CliqueStatistics statistics(CliqueProcesses members, int process) {
    return members.communicators(process).statistics();
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
      assertThat(statistics(members, 0)).isEqualTo(new CliqueStatistics(3, 3, 3, 0, 0));
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
      assertThat(statistics(members, 2).open()).isZero();
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
              () ->
                  members
                      .communicators(0)
                      .acquire(key, member(0), members.bootstrap(key, 0, "stranger")))
          .hasMessageContaining("not a member");
      CliqueKey larger = clique("a", 0, 1, 2);
      assertThatThrownBy(
              () ->
                  members
                      .communicators(0)
                      .acquire(larger, member(0), members.bootstrap(key, 0, "wrong")))
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
        CliqueCommunicators impatient =
            new CliqueCommunicators(
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

  /** Trap: the abort of one communicator waits for work that the abort of another would end. */
  @Test
  void failedIncarnationAbortsItsCommunicatorsConcurrently() {
    CountDownLatch aborts = new CountDownLatch(3);
    CommunicatorFactory factory =
        (bootstrap, options) ->
            abortingTogether(LocalCommunicator.create(bootstrap, options), aborts);
    try (CliqueProcesses members = new CliqueProcesses(1, factory, CliqueProcesses.TIMEOUT)) {
      List<CliqueLease> leases = new ArrayList<>();
      for (String purpose : List.of("a", "b", "c")) {
        leases.add(members.acquire(clique(purpose, 0), 0, "one"));
      }
      members.communicators(0).fail("executor-0", "another incarnation", "not ours").run();
      assertThat(aborts.getCount()).isEqualTo(3);
      members.communicators(0).fail("executor-0", "first", "the executor was lost").run();
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
            CliqueCommunicatorsTest.class.getClassLoader(),
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
      members.communicators(0).fail("executor-1", "first", "heartbeats stopped").run();
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
      assertThat(statistics(members, 0).created()).isZero();
      CliqueKey next = new CliqueKey(List.of(member(0), member(1, "second"), member(2)), "a");
      each(
          THREE,
          process -> {
            CliqueMember self = next.members().get(process);
            try (CliqueLease lease =
                members.acquire(next, self, members.communicators(process), "two")) {
              CliqueProcesses.use(lease);
            }
            return null;
          });
    }
  }

  /** Trap: a process that ends while its communicator is being created is not noticed any more. */
  @Test
  void memberThatFailsWhileTheCommunicatorIsMadeFailsTheOthers() {
    CliqueProcesses[] all = new CliqueProcesses[1];
    CommunicatorFactory factory =
        (bootstrap, options) -> {
          Communicator communicator = LocalCommunicator.create(bootstrap, options);
          if (bootstrap.rank() == 0) {
            all[0].communicators(0).fail("executor-1", "first", "lost meanwhile").run();
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
  void leasedCommunicatorOutlivesTheClose() {
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
}
