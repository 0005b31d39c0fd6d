package io.weft.shuffle.net;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.weft.shuffle.net.FaultyWorld.Outcome;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * Frames are delayed, dropped, duplicated, swapped, damaged or truncated, or the connection stops.
 * Every read delivers each byte once and correct, or fails clearly within the deadline. No resource
 * is left.
 *
 * <p>{@code -Dweft.faults.rounds=10000} runs more rounds, {@code -Dweft.faults.seed=N} repeats one.
 */
class FaultsTest {
  private static final int ROUNDS = Integer.getInteger("weft.faults.rounds", 300);
  private static final Long ONE_SEED = Long.getLong("weft.faults.seed");

  /** The number of parallel worlds, because a round mostly waits. */
  private static final int WORLDS = 8;

  @TempDir Path folder;

  private final AtomicLong nextSeed = new AtomicLong(1);
  private final AtomicInteger delivered = new AtomicInteger();
  private final AtomicInteger deliveredInSpiteOfFaults = new AtomicInteger();
  private final AtomicInteger failed = new AtomicInteger();

  @Test
  @Timeout(value = 2, unit = TimeUnit.HOURS)
  void everyByteArrivesOnceAndCorrectOrTheReadFails() throws Exception {
    if (ONE_SEED != null) {
      rounds(0, ONE_SEED, ONE_SEED + 1);
      return;
    }
    ExecutorService threads = Executors.newFixedThreadPool(WORLDS);
    List<Future<Void>> running = new ArrayList<>();
    for (int world = 0; world < WORLDS; world++) {
      int number = world;
      Callable<Void> rounds =
          () -> {
            rounds(number, 1, ROUNDS + 1L);
            return null;
          };
      running.add(threads.submit(rounds));
    }
    threads.shutdown();
    for (Future<Void> world : running) {
      world.get();
    }
    System.out.printf(
        "%d reads delivered, %d of them in spite of faults, and %d failed%n",
        delivered.get(), deliveredInSpiteOfFaults.get(), failed.get());
    assertThat(delivered.get()).as("delivered").isGreaterThan(ROUNDS / 10);
    assertThat(deliveredInSpiteOfFaults.get()).as("delivered despite faults").isPositive();
    assertThat(failed.get()).as("failed").isGreaterThan(ROUNDS / 20);
    await("the threads of the network and of the server ended")
        .atMost(Duration.ofSeconds(30))
        .until(FaultsTest::isQuiet);
  }

  private static boolean isQuiet() {
    return Thread.getAllStackTraces().keySet().stream()
        .map(Thread::getName)
        .noneMatch(name -> name.startsWith("weft-test-network") || name.startsWith("weft-pack"));
  }

  private void rounds(int world, long first, long end) throws Exception {
    nextSeed.accumulateAndGet(first, Math::max);
    try (FaultyWorld faulty = new FaultyWorld(folder.resolve("world-" + world))) {
      for (long seed = nextSeed.getAndIncrement(); seed < end; seed = nextSeed.getAndIncrement()) {
        try {
          count(faulty.round(seed));
        } catch (Throwable e) {
          throw new AssertionError("Repeat it with -Dweft.faults.seed=" + seed + ": " + e, e);
        }
      }
    }
  }

  private void count(Outcome outcome) {
    (outcome.delivered() ? delivered : failed).incrementAndGet();
    if (outcome.delivered() && outcome.faults() > 0) {
      deliveredInSpiteOfFaults.incrementAndGet();
    }
  }
}
