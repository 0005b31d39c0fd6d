package io.weft.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.memory.SpillPolicy.Use;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class SharedArenaConcurrencyTest {
  private static final int SEGMENT = 64 << 10;

  private final Folders folders = new Folders();
  private final FaultyStorage storage = new FaultyStorage();
  private final ExecutorService threads = Executors.newCachedThreadPool();

  @AfterEach
  void end() throws InterruptedException {
    threads.shutdownNow();
    assertThat(threads.awaitTermination(1, TimeUnit.MINUTES)).isTrue();
    folders.close();
  }

  private SharedArena open(int memorySegments, int diskSegments) throws IOException {
    return SharedArena.open(
        new ArenaOptions(
            folders.arena,
            List.of(folders.disk),
            SEGMENT,
            (long) memorySegments * SEGMENT,
            (long) diskSegments * SEGMENT,
            0),
        storage);
  }

  /** Each thread marks its extents and checks its marks, during growth, spill and full tiers. */
  @Test
  void manyThreadsNeverGetTheSameBytes() throws Exception {
    try (SharedArena arena = open(6, 2)) {
      List<Future<?>> all = new ArrayList<>();
      for (int thread = 0; thread < 8; thread++) {
        long mark = 1000L + thread;
        all.add(threads.submit(() -> allocateAndCheck(arena, mark)));
      }
      for (Future<?> one : all) {
        one.get(2, TimeUnit.MINUTES);
      }
      assertThat(arena.statistics().usedBytes()).isZero();
      assertThat(arena.statistics().extents()).isZero();
      assertThat(arena.statistics().allocations()).isGreaterThan(8 * 1000);
    }
    assertThat(Folders.contents(folders.arena)).isEmpty();
  }

  private static Void allocateAndCheck(SharedArena arena, long mark) throws IOException {
    SplittableRandom random = new SplittableRandom(mark);
    List<Extent> held = new ArrayList<>();
    for (int i = 0; i < 5000; i++) {
      if (held.size() == 20 || (random.nextInt(3) == 0 && !held.isEmpty())) {
        Extent extent = held.remove(random.nextInt(held.size()));
        checkMarks(extent, mark);
        arena.free(extent);
      } else {
        // One in fifty is larger than a segment.
        int bytes = random.nextInt(50) == 0 ? SEGMENT + 1 : 1 + random.nextInt(8 << 10);
        allocate(arena, bytes, mark, held);
      }
    }
    held.forEach(arena::free);
    return null;
  }

  private static void allocate(SharedArena arena, int bytes, long mark, List<Extent> held)
      throws IOException {
    try {
      Extent extent = arena.trim(arena.allocate(bytes, Use.RETAINED), Math.max(1, bytes / 2));
      for (long offset = 0; offset < extent.length(); offset += 8) {
        Memory.putLong(extent.address() + offset, mark);
      }
      held.add(extent);
    } catch (ArenaFullException e) {
      held.forEach(arena::free);
      held.clear();
    }
  }

  private static void checkMarks(Extent extent, long mark) {
    for (long offset = 0; offset < extent.length(); offset += 8) {
      assertThat(Memory.getLong(extent.address() + offset)).isEqualTo(mark);
    }
  }

  @Test
  void othersAllocateAndFreeWhileOneThreadCreatesASegment() throws Exception {
    try (SharedArena arena = open(2, 0)) {
      Extent first = arena.allocate(SEGMENT / 2, Use.RETAINED);
      CountDownLatch growing = new CountDownLatch(1);
      CountDownLatch goOn = new CountDownLatch(1);
      storage.reserve = slow(growing, goOn);
      Future<Extent> waiting = threads.submit(() -> arena.allocate(SEGMENT, Use.RETAINED));
      assertThat(growing.await(1, TimeUnit.MINUTES)).isTrue();

      Extent second = arena.allocate(SEGMENT / 2, Use.RETAINED);
      arena.free(first);
      arena.free(second);
      assertThat(arena.statistics().memory().segments()).isEqualTo(1);
      assertThat(waiting).isNotDone();

      goOn.countDown();
      arena.free(waiting.get(1, TimeUnit.MINUTES));
    }
  }

  private static FaultyStorage.Reserve slow(CountDownLatch growing, CountDownLatch goOn) {
    return (file, bytes) -> {
      growing.countDown();
      try {
        assertThat(goOn.await(1, TimeUnit.MINUTES)).isTrue();
      } catch (InterruptedException e) {
        throw new IOException(e);
      }
      return MappedSegment.reserve(file, bytes);
    };
  }

  @Test
  void threadsThatNeedASegmentAtOnceShareOne() throws Exception {
    assertThat(kindsOfAtOnce(4, SEGMENT / 4)).containsOnly(MemoryKind.SHARED_MEMORY);
    assertThat(storage.reserves).hasValue(1);
  }

  @Test
  void threadsForWhichTheSharedSegmentIsTooSmallCreateTheNext() throws Exception {
    assertThat(kindsOfAtOnce(4, SEGMENT)).containsOnly(MemoryKind.SHARED_MEMORY);
    assertThat(storage.reserves).hasValue(4);
  }

  /** Lets several threads allocate while the first of them still creates the segment. */
  private List<MemoryKind> kindsOfAtOnce(int count, int bytes) throws Exception {
    try (SharedArena arena = open(count, count)) {
      CountDownLatch goOn = new CountDownLatch(1);
      storage.reserve = slow(new CountDownLatch(1), goOn);
      List<Thread> started = new ArrayList<>();
      List<Future<Extent>> results = new ArrayList<>();
      for (int i = 0; i < count; i++) {
        results.add(
            threads.submit(
                () -> {
                  synchronized (started) {
                    started.add(Thread.currentThread());
                  }
                  return arena.allocate(bytes, Use.RETAINED);
                }));
      }
      Awaitility.await().until(() -> allWait(started, count));
      goOn.countDown();
      List<MemoryKind> kinds = new ArrayList<>();
      for (Future<Extent> result : results) {
        kinds.add(result.get(1, TimeUnit.MINUTES).kind());
      }
      for (Future<Extent> result : results) {
        arena.free(result.get());
      }
      return kinds;
    }
  }

  private static boolean allWait(List<Thread> threads, int count) {
    synchronized (threads) {
      return threads.size() == count
          && threads.stream().allMatch(one -> one.getState() == Thread.State.TIMED_WAITING);
    }
  }

  @Test
  void anInterruptWhileWaitingForASegmentIsKeptForLater() throws Exception {
    try (SharedArena arena = open(8, 0)) {
      CountDownLatch growing = new CountDownLatch(1);
      CountDownLatch goOn = new CountDownLatch(1);
      storage.reserve = slow(growing, goOn);
      Future<Extent> leader = threads.submit(() -> arena.allocate(SEGMENT / 4, Use.RETAINED));
      assertThat(growing.await(1, TimeUnit.MINUTES)).isTrue();
      List<Thread> follower = new ArrayList<>();
      Future<Boolean> interrupted =
          threads.submit(
              () -> {
                synchronized (follower) {
                  follower.add(Thread.currentThread());
                }
                arena.free(arena.allocate(SEGMENT / 4, Use.RETAINED));
                return Thread.interrupted();
              });
      Awaitility.await().until(() -> allWait(follower, 1));
      follower.get(0).interrupt();
      goOn.countDown();
      assertThat(interrupted.get(1, TimeUnit.MINUTES)).isTrue();
      arena.free(leader.get(1, TimeUnit.MINUTES));
    }
  }

  @Test
  void anArenaClosedWhileItGrowsKeepsNothing() throws Exception {
    CountDownLatch growing = new CountDownLatch(1);
    CountDownLatch goOn = new CountDownLatch(1);
    SharedArena arena = open(1, 0);
    storage.reserve = slow(growing, goOn);
    Future<Extent> waiting = threads.submit(() -> arena.allocate(SEGMENT, Use.RETAINED));
    assertThat(growing.await(1, TimeUnit.MINUTES)).isTrue();
    arena.close();
    goOn.countDown();
    assertThatThrownBy(() -> waiting.get(1, TimeUnit.MINUTES))
        .hasCauseInstanceOf(IllegalStateException.class)
        .hasMessageContaining("closed while it grew");
    assertThat(Folders.contents(folders.arena)).isEmpty();
    assertThat(Folders.mappings(folders.arena)).isZero();
  }

  @Test
  void oneThreadAtATimeRunsTheReclaimHooks() throws Exception {
    try (SharedArena arena = open(0, 4)) {
      AtomicInteger running = new AtomicInteger();
      AtomicInteger most = new AtomicInteger();
      arena.onPressure(
          () -> {
            most.accumulateAndGet(running.incrementAndGet(), Math::max);
            Thread.yield();
            running.decrementAndGet();
          });
      List<Future<?>> all = new ArrayList<>();
      for (int thread = 0; thread < 4; thread++) {
        all.add(threads.submit(() -> allocateAndFree(arena)));
      }
      for (Future<?> one : all) {
        one.get(1, TimeUnit.MINUTES);
      }
      assertThat(most).hasValue(1);
    }
  }

  private static Void allocateAndFree(SharedArena arena) throws IOException {
    for (int i = 0; i < 500; i++) {
      arena.free(arena.allocate(1000, Use.RETAINED));
    }
    return null;
  }

  @Test
  void aFlightThatDoesNotLandIsAnErrorAfterTheDeadline() throws Exception {
    SingleFlight flights = new SingleFlight();
    assertThat(flights.enter()).isNull();
    SingleFlight.Flight flight = flights.enter();
    assertThat(flight.leader()).isEqualTo(Thread.currentThread().getName());
    assertThatThrownBy(() -> flight.await(TimeUnit.MILLISECONDS.toNanos(10)))
        .isInstanceOf(java.util.concurrent.TimeoutException.class);
    flights.land(true);
    assertThat(flight.await(0)).isTrue();
    assertThat(flights.enter()).isNull();
  }
}
