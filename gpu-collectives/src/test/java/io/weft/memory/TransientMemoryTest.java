package io.weft.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.memory.ArenaOptions.PrivateMemory;
import io.weft.memory.SpillPolicy.Use;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Allocations of transient memory wait for each other, and for nothing else. */
class TransientMemoryTest {
  private static final int SEGMENT = 64 << 10;
  private static final Duration LONG = Duration.ofMinutes(1);

  private final Folders folders = new Folders();
  private final ExecutorService threads = Executors.newCachedThreadPool();

  @AfterEach
  void removeFolders() {
    threads.shutdownNow();
    folders.close();
  }

  /** An arena with two transient and two retained private segments, and shared memory. */
  private SharedArena open(int memorySegments, Duration timeout) throws IOException {
    return SharedArena.open(
        new ArenaOptions(
            folders.arena,
            List.of(folders.disk),
            SEGMENT,
            (long) memorySegments * SEGMENT,
            0,
            0,
            new PrivateMemory(4 * SEGMENT, 4, timeout)));
  }

  private static List<Extent> takeAll(SharedArena arena) throws IOException {
    return List.of(arena.allocate(SEGMENT, Use.TRANSIENT), arena.allocate(SEGMENT, Use.TRANSIENT));
  }

  /** Allocates in a new thread, and returns when that thread waits. */
  private Future<Extent> ask(SharedArena arena, long bytes) throws InterruptedException {
    CountDownLatch begun = new CountDownLatch(1);
    AtomicReference<Thread> asker = new AtomicReference<>();
    Future<Extent> extent =
        threads.submit(
            () -> {
              asker.set(Thread.currentThread());
              begun.countDown();
              return arena.allocate(bytes, Use.TRANSIENT);
            });
    assertThat(begun.await(1, TimeUnit.MINUTES)).isTrue();
    while (asker.get().getState() != Thread.State.TIMED_WAITING) {
      assertThat(extent.isDone()).isFalse();
      Thread.onSpinWait();
    }
    return extent;
  }

  private static void freeOf(Future<Extent> extent, SharedArena arena) throws Exception {
    arena.free(extent.get(1, TimeUnit.MINUTES));
  }

  @Test
  void aWaitingThreadGetsFreedMemory() throws Exception {
    try (SharedArena arena = open(0, LONG)) {
      List<Extent> all = takeAll(arena);
      Future<Extent> waiting = ask(arena, SEGMENT);
      assertThatThrownBy(() -> arena.allocate(1, Use.TRANSIENT_NOW))
          .isInstanceOf(ArenaFullException.class);
      all.forEach(arena::free);
      freeOf(waiting, arena);
    }
  }

  @Test
  void aWaitingThreadGetsTrimmedMemory() throws Exception {
    try (SharedArena arena = open(0, LONG)) {
      List<Extent> all = takeAll(arena);
      Future<Extent> waiting = ask(arena, SEGMENT / 2);
      Extent half = arena.trim(all.get(0), SEGMENT / 2);
      freeOf(waiting, arena);
      arena.free(half);
      arena.free(all.get(1));
    }
  }

  @Test
  void aWaitingThreadGetsFreedSharedMemory() throws Exception {
    try (SharedArena arena = open(1, LONG)) {
      Extent shared = arena.allocate(SEGMENT, Use.RETAINED);
      List<Extent> all = takeAll(arena);
      Future<Extent> waiting = ask(arena, SEGMENT);
      arena.free(shared);
      Extent found = waiting.get(1, TimeUnit.MINUTES);
      assertThat(found.kind()).isEqualTo(MemoryKind.SHARED_MEMORY);
      arena.free(found);
      all.forEach(arena::free);
    }
  }

  /** A long extent needs a segment of its own, which takes both transient segments. */
  @Test
  void anExtentThatNeedsAllMemoryWaitsForAll() throws Exception {
    try (SharedArena arena = open(0, LONG)) {
      List<Extent> all = takeAll(arena);
      Future<Extent> waiting = ask(arena, 2 * SEGMENT);
      arena.free(all.get(0));
      arena.free(all.get(1));
      freeOf(waiting, arena);
    }
  }

  @Test
  void aTimeoutNamesTheWaitTheSizesAndTheSetting() throws IOException {
    try (SharedArena arena = open(0, Duration.ofMillis(1))) {
      List<Extent> all = takeAll(arena);
      assertThatThrownBy(() -> arena.allocate(SEGMENT, Use.TRANSIENT))
          .isInstanceOf(ArenaFullException.class)
          .hasMessageContaining("no room for 64.0 KiB within 0.001 s")
          .hasMessageContaining("transient private memory: 128.0 KiB in use")
          .hasMessageContaining("privateMemory");
      all.forEach(arena::free);
    }
  }

  @Test
  void anAllocationThatNeverFitsDoesNotWait() throws IOException {
    try (SharedArena arena = open(1, Duration.ofDays(1))) {
      assertThatThrownBy(() -> arena.allocate(2 * SEGMENT + 1, Use.TRANSIENT))
          .isInstanceOf(ArenaFullException.class)
          .hasMessageNotContaining("within");
    }
  }

  @Test
  void anInterruptEndsTheWait() throws Exception {
    try (SharedArena arena = open(0, LONG)) {
      List<Extent> all = takeAll(arena);
      Future<Extent> waiting =
          threads.submit(
              () -> {
                Thread.currentThread().interrupt();
                try {
                  return arena.allocate(1, Use.TRANSIENT);
                } finally {
                  assertThat(Thread.interrupted()).as("it stays interrupted").isTrue();
                }
              });
      assertThatThrownBy(() -> waiting.get(1, TimeUnit.MINUTES))
          .isInstanceOf(ExecutionException.class)
          .hasCauseInstanceOf(InterruptedIOException.class);
      all.forEach(arena::free);
    }
  }

  /** Each thread has half of the memory and needs one segment more. */
  @Test
  void threadsThatWaitForEachOtherReturnMemory() throws Exception {
    CyclicBarrier allIsTaken = new CyclicBarrier(2);
    try (SharedArena arena = open(0, LONG)) {
      Callable<Void> task =
          () -> {
            Deque<Extent> open = new ArrayDeque<>(List.of(arena.allocate(SEGMENT, Use.TRANSIENT)));
            Runnable giveBack = () -> arena.free(open.remove());
            try (Waiters.Registration ignored = arena.waiters().beforeThisThreadWaits(giveBack)) {
              allIsTaken.await(1, TimeUnit.MINUTES);
              arena.free(arena.allocate(SEGMENT, Use.TRANSIENT));
            }
            open.forEach(arena::free);
            return null;
          };
      for (Future<Void> end : threads.invokeAll(List.of(task, task), 30, TimeUnit.SECONDS)) {
        end.get();
      }
      List<Extent> all = takeAll(arena);
      all.forEach(arena::free);
    }
  }

  @Test
  void onlyTheWaitingThreadReturnsMemory() throws Exception {
    AtomicInteger calls = new AtomicInteger();
    try (SharedArena arena = open(0, Duration.ofMillis(1));
        Waiters.Registration here = arena.waiters().beforeThisThreadWaits(calls::incrementAndGet)) {
      List<Extent> all = takeAll(arena);
      assertThat(calls).hasValue(0);
      Future<Extent> other = threads.submit(() -> arena.allocate(1, Use.TRANSIENT));
      assertThatThrownBy(() -> other.get(1, TimeUnit.MINUTES))
          .hasCauseInstanceOf(ArenaFullException.class);
      assertThat(calls).hasValue(0);
      assertThatThrownBy(() -> arena.allocate(1, Use.TRANSIENT))
          .isInstanceOf(ArenaFullException.class);
      assertThat(calls).hasValue(1);
      here.close();
      assertThatThrownBy(() -> arena.allocate(1, Use.TRANSIENT))
          .isInstanceOf(ArenaFullException.class);
      assertThat(calls).hasValue(1);
      all.forEach(arena::free);
    }
  }

  /** Like a task that is killed but not interrupted. */
  @Test
  void aFailedCheckEndsTheWait() throws Exception {
    AtomicBoolean killed = new AtomicBoolean();
    try (SharedArena arena = open(0, LONG)) {
      arena
          .waiters()
          .check(
              () -> {
                if (killed.get()) {
                  throw new IllegalStateException("killed");
                }
              });
      List<Extent> all = takeAll(arena);
      Future<Extent> waiting = ask(arena, 1);
      killed.set(true);
      assertThatThrownBy(() -> waiting.get(30, TimeUnit.SECONDS)).hasRootCauseMessage("killed");
      all.forEach(arena::free);
    }
  }

  @Test
  void aClosedArenaEndsTheWait() throws Exception {
    try (SharedArena arena = open(0, LONG)) {
      List<Extent> all = takeAll(arena);
      Future<Extent> waiting = ask(arena, 1);
      arena.refuse();
      assertThatThrownBy(() -> waiting.get(1, TimeUnit.MINUTES))
          .hasRootCauseMessage("the arena is closed");
      all.forEach(arena::free);
    }
  }

  /** Hooks list folders, and private memory is allocated chunk by chunk. */
  @Test
  void hooksDoNotRunForEveryChunk() throws IOException {
    AtomicInteger calls = new AtomicInteger();
    try (SharedArena arena = open(0, LONG)) {
      arena.onPressure(calls::incrementAndGet);
      long start = System.nanoTime();
      for (int chunk = 0; chunk < 2000; chunk++) {
        arena.free(arena.allocate(1000, Use.TRANSIENT));
      }
      long seconds = TimeUnit.NANOSECONDS.toSeconds(System.nanoTime() - start);
      assertThat(calls.get()).isBetween(1, (int) seconds + 2);
    }
  }
}
