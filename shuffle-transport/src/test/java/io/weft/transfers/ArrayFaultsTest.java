package io.weft.transfers;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.weft.transfers.FaultyArrays.Outcome;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * As {@code FaultsTest}, for arrays between executors: frames of connections are delayed, dropped,
 * doubled, swapped, damaged or cut, or a connection stalls. Every array arrives whole and correct,
 * or fails within the deadline with both ends named. Tasks that are killed and run again never meet
 * transfers of their earlier attempts. Nothing leaks, and the same executors work again once the
 * network works.
 *
 * <p>{@code -Dweft.faults.rounds=10000} runs more rounds, {@code -Dweft.faults.seed=N} repeats one.
 */
class ArrayFaultsTest {
  private static final int ROUNDS = Integer.getInteger("weft.faults.rounds", 150);
  private static final Long ONE_SEED = Long.getLong("weft.faults.seed");

  /** Most of a round is waiting. */
  private static final int WORLDS = 8;

  @TempDir Path folder;

  private final AtomicLong nextSeed = new AtomicLong(1);
  private final AtomicInteger arrived = new AtomicInteger();
  private final AtomicInteger wholeRoundsInSpiteOfFaults = new AtomicInteger();
  private final AtomicInteger failed = new AtomicInteger();
  private final AtomicInteger attempts = new AtomicInteger();
  private final AtomicInteger sameKey = new AtomicInteger();
  private final AtomicInteger otherKey = new AtomicInteger();

  @Test
  @Timeout(value = 3, unit = TimeUnit.HOURS)
  void everyArrayWholeAndRightOrAClearFailure() throws Exception {
    if (ONE_SEED != null) {
      Outcome unused = round(ONE_SEED);
      return;
    }
    ExecutorService threads = java.util.concurrent.Executors.newFixedThreadPool(WORLDS);
    List<Future<Void>> running = new ArrayList<>();
    for (int world = 0; world < WORLDS; world++) {
      Callable<Void> rounds =
          () -> {
            rounds();
            return null;
          };
      running.add(threads.submit(rounds));
    }
    threads.shutdown();
    for (Future<Void> world : running) {
      world.get();
    }
    System.out.printf(
        "%d arrays arrived, %d failed; %d rounds had faults and no failure; %d attempts of tasks,"
            + " of them %d retries with the same key and %d with another one%n",
        arrived.get(),
        failed.get(),
        wholeRoundsInSpiteOfFaults.get(),
        attempts.get(),
        sameKey.get(),
        otherKey.get());
    assertThat(arrived.get()).as("arrived").isGreaterThan(ROUNDS);
    assertThat(wholeRoundsInSpiteOfFaults.get()).as("rounds in spite of faults").isPositive();
    assertThat(failed.get()).as("failed").isGreaterThan(ROUNDS / 20);
    assertThat(attempts.get()).as("attempts of tasks").isGreaterThan(2 * ROUNDS);
    assertThat(sameKey.get()).as("retries with the same key").isGreaterThan(ROUNDS / 10);
    assertThat(otherKey.get()).as("retries with another key").isGreaterThan(ROUNDS / 5);
    await("the threads of the network and of the transfers ended")
        .atMost(Duration.ofSeconds(30))
        .until(ArrayFaultsTest::isQuiet);
  }

  private static boolean isQuiet() {
    return Thread.getAllStackTraces().keySet().stream()
        .map(Thread::getName)
        .noneMatch(
            name ->
                name.startsWith("weft-test-network")
                    || name.startsWith("weft-transfer")
                    || name.startsWith("weft-lane-transfers")
                    || name.startsWith("weft-agent"));
  }

  private void rounds() throws Exception {
    for (long seed = nextSeed.getAndIncrement();
        seed <= ROUNDS;
        seed = nextSeed.getAndIncrement()) {
      Outcome outcome = round(seed);
      arrived.addAndGet(outcome.arrived());
      failed.addAndGet(outcome.failed());
      attempts.addAndGet(outcome.attempts().all());
      sameKey.addAndGet(outcome.attempts().sameKey());
      otherKey.addAndGet(outcome.attempts().otherKey());
      if (outcome.failed() == 0 && outcome.faults() > 0) {
        wholeRoundsInSpiteOfFaults.incrementAndGet();
      }
    }
  }

  private Outcome round(long seed) {
    try {
      return FaultyArrays.round(folder.resolve("round-" + seed), seed);
    } catch (Throwable e) {
      throw new AssertionError("Repeat it with -Dweft.faults.seed=" + seed + ": " + e, e);
    }
  }
}
