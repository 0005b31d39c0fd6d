package io.weft.collectives.symmetric;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveException.Kind;
import io.weft.collectives.Communicator;
import io.weft.collectives.contract.RankGang;
import io.weft.device.Deadline;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class SignalBarrierTest {
  private static final int LIVES = 12;

  @TempDir Path folder;

  /** Runs on one rank with its barrier. */
  private interface Use {
    void run(int rank, SignalBarrier barrier);
  }

  private SymmetricOptions options() {
    return SymmetricOptions.in(folder.resolve("symmetric")).withSegmentBytes(64 << 10);
  }

  private void onBarriers(int nranks, int start, Use use) {
    try (RankGang gang = Gangs.local(nranks)) {
      gang.run(
          communicator -> {
            try (SymmetricArena arena = SymmetricArena.open(communicator, options());
                SignalBarrier barrier = SignalBarrier.open(arena, start)) {
              use.run(communicator.rank(), barrier);
              communicator.barrier();
            }
          });
    }
  }

  /** Every rank publishes its round; no rank may be behind when a barrier is passed. */
  private static void meetOften(
      AtomicIntegerArray rounds, int rank, int count, SignalBarrier barrier) {
    for (int round = 1; round <= count; round++) {
      rounds.lazySet(rank, round);
      barrier.await(Gangs.soon());
      for (int peer = 0; peer < rounds.length(); peer++) {
        int theirs = rounds.get(peer);
        if (theirs != round && theirs != round + 1) {
          throw new AssertionError(
              "rank "
                  + rank
                  + " passed barrier "
                  + round
                  + " while rank "
                  + peer
                  + " was in "
                  + theirs);
        }
      }
    }
  }

  @ParameterizedTest
  @CsvSource({"1, 100", "2, 100000", "3, 10000", "5, 1000", "8, 500", "32, 60"})
  void noRankLeavesBeforeAllHaveArrived(int nranks, int count) {
    AtomicIntegerArray rounds = new AtomicIntegerArray(nranks);
    onBarriers(nranks, 0, (rank, barrier) -> meetOften(rounds, rank, count, barrier));
  }

  /** Trap: 32-bit counters that are compared as plain numbers. */
  @ParameterizedTest
  @ValueSource(ints = {Integer.MAX_VALUE - 20, -20})
  void countersWrapAround(int start) {
    AtomicIntegerArray rounds = new AtomicIntegerArray(3);
    onBarriers(
        3,
        start,
        (rank, barrier) -> {
          meetOften(rounds, rank, 100, barrier);
          assertThat(barrier.passed((rank + 1) % 3)).isEqualTo(start + 100);
        });
  }

  /** Trap: slots and counter share memory, so with three ranks one overwrites the other. */
  @ParameterizedTest
  @ValueSource(ints = {2, 3, 32})
  void slotsAndCountersAreApart(int nranks) {
    onBarriers(
        nranks,
        0,
        (rank, barrier) -> {
          for (int round = 0; round < 8; round++) {
            barrier.await(Gangs.soon());
          }
          for (int peer = 0; peer < nranks; peer++) {
            int expected = peer == rank ? 0 : 8;
            assertThat(barrier.passed(peer)).isEqualTo(expected);
            assertThat(barrier.raised(peer)).isEqualTo(expected);
          }
        });
  }

  /** Each rank is the last one in turn. It comes when it has seen that all others wait. */
  @ParameterizedTest
  @ValueSource(ints = {2, 3, 32})
  void noRankLeavesBeforeTheLastOneArrives(int nranks) {
    AtomicIntegerArray passed = new AtomicIntegerArray(nranks);
    onBarriers(
        nranks,
        0,
        (rank, barrier) -> {
          for (int last = 0; last < nranks; last++) {
            if (rank == last) {
              requireAllWait(passed, barrier, last);
            }
            barrier.await(Gangs.soon());
            passed.set(rank, last + 1);
          }
        });
  }

  private static void requireAllWait(AtomicIntegerArray passed, SignalBarrier barrier, int rank) {
    Deadline deadline = Gangs.soon();
    for (int peer = 0; peer < passed.length(); peer++) {
      while (peer != rank && barrier.raised(peer) <= rank) {
        assertThat(deadline.expired()).as("rank %d waits for rank %d", peer, rank).isFalse();
        LockSupport.parkNanos(20_000);
      }
    }
    for (int peer = 0; peer < passed.length(); peer++) {
      if (peer != rank) {
        assertThat(passed.get(peer)).as("barriers that rank %d has passed", peer).isEqualTo(rank);
      }
    }
  }

  /**
   * Trap: a slot is set to zero after a peer has already signalled. One rank is late with that: it
   * waits for a peer that could signal. Reused memory shows slots that are not set.
   */
  @Test
  void slotsAreZeroBeforeAnyPeerCanSignal() {
    AtomicIntegerArray opened = new AtomicIntegerArray(LIVES);
    try (RankGang gang = Gangs.local(4)) {
      gang.run(
          communicator -> {
            try (SymmetricArena arena =
                SymmetricArena.open(communicator, options().withPoison(true))) {
              for (int life = 0; life < LIVES; life++) {
                int now = life;
                boolean late = communicator.rank() == life % 4;
                SymmetricArena.Initializer zero =
                    window -> {
                      if (late) {
                        requireNoneOpened(opened, now);
                      }
                      SignalBarrier.initialize(window, 0);
                    };
                try (SignalBarrier barrier = SignalBarrier.open(arena, zero)) {
                  opened.incrementAndGet(life);
                  for (int round = 1; round <= 5; round++) {
                    barrier.await(Gangs.soon());
                    assertThat(barrier.passed((communicator.rank() + 1) % 4)).isEqualTo(round);
                  }
                }
              }
              assertThat(arena.reservedBytes()).isEqualTo(64 << 10);
            }
          });
    }
  }

  private static void requireNoneOpened(AtomicIntegerArray opened, int life) {
    Deadline deadline = Deadline.after(Duration.ofMillis(30));
    while (!deadline.expired()) {
      assertThat(opened.get(life)).as("ranks that could signal").isZero();
      LockSupport.parkNanos(100_000);
    }
  }

  @Test
  void slowPeerDelaysAllAndNoRankGetsTwoAhead() {
    AtomicIntegerArray rounds = new AtomicIntegerArray(3);
    onBarriers(
        3,
        0,
        (rank, barrier) -> {
          for (int i = 0; i < 30; i++) {
            if (rank == 1) {
              LockSupport.parkNanos(2_000_000);
            }
            int expected = i + 1;
            rounds.incrementAndGet(rank);
            barrier.await(Gangs.soon());
            assertThat(rounds.get(1)).isBetween(expected, expected + 1);
          }
        });
  }

  /** Trap: with one counter per rank, {0,1} and {1,2} leave the ranks with different counts. */
  @Test
  void overlappingGroupsAgreeOnCounts() {
    onBarriers(
        3,
        0,
        (rank, barrier) -> {
          for (int i = 0; i < 50; i++) {
            if (rank != 2) {
              barrier.await(barrier.group(0, 1), Gangs.soon());
            }
            if (rank != 0) {
              barrier.await(barrier.group(1, 2), Gangs.soon());
            }
            barrier.await(Gangs.soon());
          }
          assertThat(barrier.passed(0)).isEqualTo(List.of(0, 100, 50).get(rank));
          assertThat(barrier.passed(1)).isEqualTo(List.of(100, 0, 100).get(rank));
          assertThat(barrier.passed(2)).isEqualTo(List.of(50, 100, 0).get(rank));
        });
  }

  @Test
  void nonParticipantIsNeverAwaited() {
    onBarriers(
        4,
        0,
        (rank, barrier) -> {
          if (rank < 2) {
            for (int i = 0; i < 100; i++) {
              barrier.await(barrier.group(1, 0), Gangs.soon());
            }
            assertThat(barrier.passed(1 - rank)).isEqualTo(100);
          }
          assertThat(barrier.passed(3)).isZero();
        });
  }

  @Test
  void emptyGroupDoesNothing() {
    onBarriers(
        2,
        0,
        (rank, barrier) -> {
          barrier.await(barrier.group(), Gangs.soon());
          assertThat(barrier.passed(1 - rank)).isZero();
        });
  }

  @Test
  void missingRankIsNamed() {
    try (RankGang gang = Gangs.local(3)) {
      List<CollectiveException> failures =
          gang.ask(
              communicator -> {
                try (SymmetricArena arena = SymmetricArena.open(communicator, options())) {
                  SignalBarrier barrier = SignalBarrier.open(arena);
                  CollectiveException failure =
                      communicator.rank() == 1 ? null : waitForRankOne(communicator, barrier);
                  communicator.barrier();
                  return failure;
                }
              });
      for (int rank : List.of(0, 2)) {
        assertThat(failures.get(rank).kind()).isEqualTo(Kind.TIMEOUT);
        assertThat(failures.get(rank).ranks()).containsExactly(1);
        assertThat(failures.get(rank)).hasMessageContaining("rank " + rank + " waited for rank 1");
      }
    }
  }

  private static CollectiveException waitForRankOne(
      Communicator communicator, SignalBarrier barrier) {
    SignalBarrier.Group pair = barrier.group(communicator.rank(), 1);
    CollectiveException failure =
        catchThrowableOfType(
            CollectiveException.class,
            () -> barrier.await(pair, Deadline.after(Duration.ofMillis(300))));
    assertThatThrownBy(() -> barrier.await(Gangs.soon())).hasMessageContaining("cannot run");
    return failure;
  }

  /** Otherwise, ranks in different groups would pass each other's barriers. */
  @Test
  void ranksInDifferentGroupsAreNamed() {
    try (RankGang gang = Gangs.local(3)) {
      gang.run(
          communicator -> {
            try (SymmetricArena arena = SymmetricArena.open(communicator, options())) {
              SignalBarrier barrier = SignalBarrier.open(arena);
              if (communicator.rank() < 2) {
                SignalBarrier.Group group =
                    communicator.rank() == 0 ? barrier.group(0, 1) : barrier.group(0, 1, 2);
                CollectiveException failure =
                    catchThrowableOfType(
                        CollectiveException.class, () -> barrier.await(group, Gangs.soon()));
                assertThat(failure.kind()).isEqualTo(Kind.MISMATCH);
                assertThat(failure.ranks()).containsExactly(0, 1);
                assertThat(failure).hasMessageContaining("[0, 1, 2]");
              }
              communicator.barrier();
            }
          });
    }
  }

  @Test
  void ranksOutsideTheArenaAreRefused() {
    onBarriers(
        2,
        0,
        (rank, barrier) -> {
          assertThatThrownBy(() -> barrier.group(1 - rank)).hasMessageContaining("not a member");
          assertThatThrownBy(() -> barrier.group(rank, 2)).hasMessageContaining("rank 2");
        });
  }
}
