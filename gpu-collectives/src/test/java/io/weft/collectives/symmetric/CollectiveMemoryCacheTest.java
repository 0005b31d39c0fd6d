package io.weft.collectives.symmetric;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveException.Kind;
import io.weft.collectives.Communicator;
import io.weft.collectives.DataType;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.contract.RankGang;
import io.weft.collectives.contract.Values;
import io.weft.collectives.symmetric.CollectiveMemoryCache.CacheStatistics;
import io.weft.device.Event;
import io.weft.device.HostEvent;
import io.weft.device.HostLane;
import io.weft.device.Lane;
import io.weft.logging.CapturedLogs;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class CollectiveMemoryCacheTest {
  @TempDir Path folder;

  /** Runs on one rank with its cache. */
  private interface Use {
    void run(Communicator communicator, CollectiveMemoryCache cache) throws Exception;
  }

  private void onCaches(RankGang gang, Use use) {
    gang.run(
        communicator -> {
          SymmetricOptions options =
              SymmetricOptions.in(folder.resolve("symmetric"))
                  .withSegmentBytes(1 << 20)
                  .withPoison(true);
          try (SymmetricArena arena = SymmetricArena.open(communicator, options);
              CollectiveMemoryCache cache = new CollectiveMemoryCache(arena)) {
            use.run(communicator, cache);
            communicator.barrier();
          }
        });
  }

  private static CollectiveMemoryRequest of(String purpose, long bytes) {
    return new CollectiveMemoryRequest(purpose, bytes);
  }

  @Test
  void secondAcquisitionHitsOnAllRanksAndKeepsContents() {
    try (RankGang gang = Gangs.local(3)) {
      onCaches(
          gang,
          (communicator, cache) -> {
            int number;
            try (CollectiveMemory first = cache.acquire(of("scratch", 400))) {
              assertThat(first.isReused()).isFalse();
              number = first.window().number();
              Values.fill(first.window().buffer(DataType.INT32), index -> index + 5);
            }
            for (int i = 0; i < 20; i++) {
              try (CollectiveMemory again = cache.acquire(of("scratch", 4 * (i + 1)))) {
                assertThat(again.isReused()).isTrue();
                assertThat(again.window().number()).isEqualTo(number);
                Values.check("kept", again.window().buffer(DataType.INT32), index -> index + 5);
              }
            }
            assertThat(cache.statistics()).isEqualTo(new CacheStatistics(20, 1, 0, 0, 1));
          });
    }
  }

  @Test
  void largerRequestReplacesTheEntryOnAllRanks() {
    try (RankGang gang = Gangs.local(2)) {
      onCaches(
          gang,
          (communicator, cache) -> {
            cache.acquire(of("scratch", 100)).close();
            try (CollectiveMemory larger = cache.acquire(of("scratch", 10_000))) {
              assertThat(larger.isReused()).isFalse();
              assertThat(larger.window().bytes()).isEqualTo(10_000);
            }
            assertThat(cache.statistics()).isEqualTo(new CacheStatistics(0, 2, 0, 1, 1));
          });
    }
  }

  /** Trap: one rank has dropped its entry, and the others wait without end for it to create one. */
  @Test
  void entryEvictedOnOneRankIsRebuiltOnAllAndNamed() {
    CapturedLogs.clear();
    try (RankGang gang = Gangs.local(3)) {
      onCaches(
          gang,
          (communicator, cache) -> {
            int number;
            try (CollectiveMemory first = cache.acquire(of("evicted on rank one", 64))) {
              number = first.window().number();
            }
            if (communicator.rank() == 1) {
              assertThat(cache.evict("evicted on rank one")).isTrue();
            }
            try (CollectiveMemory again = cache.acquire(of("evicted on rank one", 64))) {
              assertThat(again.isReused()).isFalse();
              assertThat(again.window().number()).isGreaterThan(number);
            }
            assertThat(cache.statistics().mismatches()).isEqualTo(1);
            try (CollectiveMemory third = cache.acquire(of("evicted on rank one", 64))) {
              assertThat(third.isReused()).isTrue();
            }
          });
    }
    assertThat(CapturedLogs.lines())
        .filteredOn(line -> line.contains("evicted on rank one"))
        .hasSize(3)
        .allSatisfy(line -> assertThat(line).startsWith("WARN").contains("rank 1 no longer had"));
  }

  @Test
  void differentRequestsAreNamedWithRanksAndKeys() {
    try (RankGang gang = Gangs.local(3)) {
      onCaches(
          gang,
          (communicator, cache) -> {
            CollectiveMemoryRequest request = of(communicator.rank() == 2 ? "theirs" : "ours", 64);
            CollectiveException failure =
                catchThrowableOfType(CollectiveException.class, () -> cache.acquire(request));
            assertThat(failure.kind()).isEqualTo(Kind.MISMATCH);
            assertThat(failure.ranks()).containsExactly(0, 2);
            assertThat(failure).hasMessageContaining("ours").hasMessageContaining("theirs");
            cache.acquire(of("both", 64)).close();
          });
    }
  }

  @Test
  void secondLoanOfOnePurposeIsRefusedOnAllRanks() {
    try (RankGang gang = Gangs.local(2)) {
      onCaches(
          gang,
          (communicator, cache) -> {
            CollectiveMemory first = cache.acquire(of("mine", 64));
            if (communicator.rank() == 0) {
              first.close();
            }
            CollectiveException failure =
                catchThrowableOfType(
                    CollectiveException.class, () -> cache.acquire(of("mine", 64)));
            assertThat(failure.kind()).isEqualTo(Kind.INVALID);
            assertThat(failure).hasMessageContaining("rank 1").hasMessageContaining("\"mine\"");
            first.close();
            try (CollectiveMemory again = cache.acquire(of("mine", 64))) {
              assertThat(again.isReused()).isTrue();
            }
          });
    }
  }

  /**
   * Trap: two operators share a scratch buffer, and one runs with the contents that the other left.
   */
  @Test
  void twoOperatorsThatAlternateKeepTheirOwnScratch() {
    try (RankGang gang = Gangs.local(2)) {
      onCaches(
          gang,
          (communicator, cache) -> {
            for (int i = 0; i < 25; i++) {
              for (int operator = 0; operator < 2; operator++) {
                int expected = operator * 1000;
                boolean first = i == 0;
                try (CollectiveMemory scratch =
                    cache.acquire(of("table of operator " + operator, 4000))) {
                  TypedBuffer table = scratch.window().buffer(DataType.INT32);
                  if (first) {
                    Values.fill(table, index -> expected + index);
                  }
                  Values.check("operator", table, index -> expected + index);
                }
              }
            }
            assertThat(cache.statistics()).isEqualTo(new CacheStatistics(48, 2, 0, 0, 2));
          });
    }
  }

  @Test
  void severalRequestsAreSettledTogether() {
    try (RankGang gang = Gangs.local(2)) {
      onCaches(
          gang,
          (communicator, cache) -> {
            cache.acquire(of("b", 64)).close();
            List<CollectiveMemory> loans = cache.acquire(List.of(of("a", 64), of("b", 64)));
            assertThat(loans).extracting(CollectiveMemory::isReused).containsExactly(false, true);
            loans.forEach(CollectiveMemory::close);
          });
    }
  }

  /**
   * Trap: the handle dies once the host has submitted the work. The work is held before it uses the
   * memory, everything else is freed, and reused memory is poisoned.
   */
  @Test
  void memoryIsFreedOnlyAfterTheLastUseHasCompleted() {
    try (RankGang gang = Gangs.host(folder.resolve("host"), 2)) {
      onCaches(
          gang,
          (communicator, cache) -> {
            CountDownLatch held = new CountDownLatch(1);
            CountDownLatch ended = new CountDownLatch(1);
            String place;
            try (Lane lane =
                HostLane.open("delayed-" + communicator.rank(), Duration.ofSeconds(60))) {
              CollectiveMemory memory = cache.acquire(of("delayed", 100_000));
              place = memory.window().place();
              TypedBuffer data = memory.window().buffer(DataType.INT32);
              Values.fill(data, index -> index + 1);
              Event block = lane.submit("hold", () -> held.await(60, TimeUnit.SECONDS));
              Event late =
                  lane.submit("late use", () -> Values.check("late", data, index -> index + 1));
              memory.usedUntil(late);
              late.whenDone(cause -> ended.countDown());
              assertThat(memory.earlierUses()).containsExactly(late);
              memory.close();
              assertThat(cache.evict("delayed")).isTrue();
              for (int i = 0; i < 3; i++) {
                // Each borrower requests the memory that the others freed; none gets memory in use.
                try (CollectiveMemory other = cache.acquire(of("other", 100_000 + i))) {
                  assertThat(other.window().place()).isNotEqualTo(place);
                }
              }
              held.countDown();
              block.await(Gangs.soon());
              late.await(Gangs.soon());
              assertThat(ended.await(60, TimeUnit.SECONDS)).isTrue();
            }
            try (CollectiveMemory again = cache.acquire(of("delayed", 100_000))) {
              assertThat(again.isReused()).isFalse();
              assertThat(again.window().place()).isEqualTo(place);
              assertThat(again.earlierUses()).isEmpty();
            }
          });
    }
  }

  /** A borrower on another lane learns which uses it must wait for. */
  @Test
  void nextBorrowerLearnsOfUsesThatStillRun() {
    try (RankGang gang = Gangs.local(2)) {
      onCaches(
          gang,
          (communicator, cache) -> {
            HostEvent use = new HostEvent("an earlier use");
            try (CollectiveMemory first = cache.acquire(of("shared", 64))) {
              first.usedUntil(use);
            }
            try (CollectiveMemory second = cache.acquire(of("shared", 64))) {
              assertThat(second.isReused()).isTrue();
              assertThat(second.earlierUses()).containsExactly(use);
              use.complete();
              assertThat(second.earlierUses()).isEmpty();
            }
          });
    }
  }
}
