package io.weft.device.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import com.sun.jna.Pointer;
import io.weft.device.Deadline;
import io.weft.device.DoubleLibraries;
import io.weft.device.Event;
import io.weft.device.Event.State;
import io.weft.device.HostEvent;
import io.weft.device.Lane.Priority;
import io.weft.device.UsesDoubles;
import io.weft.memory.Memory;
import io.weft.testgpus.UsesGpu;
import java.io.IOException;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

@UsesGpu
class CudaLaneTest {
  private static final Duration TIMEOUT = Duration.ofSeconds(30);
  private static final int BYTES = 5000;

  private CudaDevice device;

  @BeforeEach
  void open() {
    device = DoubleLibraries.cuda().open(0);
  }

  @AfterEach
  void nothingIsLeaked() {
    DoubleLibraries.cudaControls().cudaDoublePause(0);
    device.close();
    DoubleLibraries.assertClean();
  }

  private CudaLane lane(String name) {
    return CudaLane.open(device, name, TIMEOUT, Priority.HIGHEST);
  }

  private static Deadline deadline() {
    return Deadline.after(TIMEOUT);
  }

  private static void pause(boolean paused) {
    DoubleLibraries.cudaControls().cudaDoublePause(paused ? 1 : 0);
  }

  /** Both are enqueued while the device is blocked: no host thread waits. */
  @Test
  @UsesDoubles
  void laneWaitsForAnotherOnTheDevice() {
    try (CudaMemoryPool pinned = CudaMemoryPool.open(device, CudaMemoryPool.Kind.PINNED, 1 << 20);
        CudaMemoryPool pool = CudaMemoryPool.open(device, CudaMemoryPool.Kind.DEVICE, 1 << 20);
        CudaMemory from = pinned.take(BYTES);
        CudaMemory to = pinned.take(BYTES);
        CudaMemory there = pool.take(BYTES);
        CudaLane up = lane("up");
        CudaLane down = lane("down")) {
      Memory.setMemory(from.address(), BYTES, (byte) 7);
      Memory.setMemory(to.address(), BYTES, (byte) 0);
      pause(true);
      Event copied =
          up.submit("up", () -> up.stream().copyToDevice(there.address(), from.address(), BYTES));
      Event back =
          down.submit(
              "down", () -> down.stream().copyToHost(to.address(), there.address(), BYTES), copied);
      back.awaitRecorded(deadline());
      assertThat(copied.state()).isEqualTo(State.RECORDED);
      assertThat(back.state()).isEqualTo(State.RECORDED);
      assertThat(Memory.getByte(to.address() + BYTES - 1)).isZero();
      pause(false);
      back.await(deadline());
      copied.await(deadline());
      assertThat(Memory.getByte(to.address() + BYTES - 1)).isEqualTo((byte) 7);
    }
  }

  @Test
  void workAfterAnEventOfTheHostIsPendingUntilItEnds() {
    HostEvent before = new HostEvent("before");
    try (CudaLane lane = lane("pending")) {
      Event event = lane.submit("after", () -> {}, before);
      assertThat(event.state()).isEqualTo(State.PENDING);
      before.complete();
      event.await(deadline());
    }
  }

  @Test
  void failedWorkSkipsOnlyDependentWork() {
    try (CudaLane lane = lane("failing")) {
      IOException cause = new IOException("bad");
      Event failed =
          lane.submit(
              "failing",
              () -> {
                throw cause;
              });
      CountDownLatch ran = new CountDownLatch(1);
      Event skipped = lane.submit("skipped", ran::countDown, failed);
      Event independent = lane.submit("independent", () -> {});
      independent.await(deadline());
      await().until(() -> skipped.state() == State.FAILED);
      assertThat(failed.failure()).contains(cause);
      assertThat(skipped.failure()).contains(cause);
      assertThat(ran.getCount()).isOne();
    }
  }

  @Test
  @UsesDoubles
  void deviceThatIsLostFailsTheEvent() {
    try (CudaLane lane = lane("lost")) {
      pause(true);
      Event event = lane.submit("work", () -> {});
      event.awaitRecorded(deadline());
      DoubleLibraries.cudaControls().cudaDoubleLose(0, 719);
      await().until(() -> event.state() == State.FAILED);
      assertThat(event.failure().orElseThrow())
          .isInstanceOf(CudaException.class)
          .hasMessageContaining("CUDA_ERROR_LAUNCH_FAILED (719)")
          .hasMessageContaining("stream lost of cuda:0")
          .hasMessageContaining("this process has lost the GPU and must be restarted");
      DoubleLibraries.cudaControls().cudaDoubleLose(0, 0);
      pause(false);
    } finally {
      DoubleLibraries.cudaControls().cudaDoubleLose(0, 0);
    }
  }

  /** The device cannot skip enqueued work, but its event must not succeed. */
  @Test
  @UsesDoubles
  void dependencyThatFailsAfterItWasRecordedFailsDependentWork() {
    try (CudaDevice second = DoubleLibraries.cuda().open(1);
        CudaLane first = lane("first");
        CudaLane behind = CudaLane.open(second, "behind", TIMEOUT, Priority.NORMAL)) {
      pause(true);
      Event lost = first.submit("lost", () -> {});
      Event event = behind.submit("behind", () -> {}, lost);
      Event later = behind.submit("later", () -> {});
      event.awaitRecorded(deadline());
      later.awaitRecorded(deadline());
      DoubleLibraries.cudaControls().cudaDoubleLose(0, 719);
      await().until(() -> lost.state() == State.FAILED);
      assertThat(event.state()).isEqualTo(State.RECORDED);
      pause(false);
      await().until(() -> event.state() == State.FAILED);
      assertThat(event.failure()).isEqualTo(lost.failure());
      later.await(deadline());
      DoubleLibraries.cudaControls().cudaDoubleLose(0, 0);
    } finally {
      DoubleLibraries.cudaControls().cudaDoubleLose(0, 0);
    }
  }

  /** An interrupt, before or during the wait, does not end a stream before its work. */
  @ParameterizedTest
  @UsesDoubles
  @ValueSource(booleans = {false, true})
  void closeByAnInterruptedThreadWaitsForTheDevice(boolean isBefore) throws Exception {
    CudaLane lane = lane("interrupted");
    pause(true);
    Event event = lane.submit("work", () -> {});
    event.awaitRecorded(deadline());
    AtomicBoolean kept = new AtomicBoolean();
    Thread closer =
        new Thread(
            () -> {
              if (isBefore) {
                Thread.currentThread().interrupt();
              }
              lane.close();
              kept.set(Thread.currentThread().isInterrupted());
            });
    closer.start();
    await().until(() -> isRefusing(lane));
    closer.interrupt();
    closer.join(200);
    assertThat(closer.isAlive()).isTrue();
    assertThat(event.state()).isEqualTo(State.RECORDED);
    pause(false);
    closer.join(30_000);
    assertThat(closer.isAlive()).isFalse();
    assertThat(kept).isTrue();
    assertThat(event.state()).isEqualTo(State.COMPLETE);
  }

  private static boolean isRefusing(CudaLane lane) {
    try {
      Event unused = lane.record();
      return false;
    } catch (IllegalStateException e) {
      return true;
    }
  }

  /** The event ends, because threads may wait for it; the device writes for longer. */
  @Test
  @UsesDoubles
  void memoryOfWorkThatOutlivesItsLaneIsKept() throws Exception {
    CudaMemoryPool pool = CudaMemoryPool.open(device, CudaMemoryPool.Kind.DEVICE, 1 << 20);
    CudaMemory memory = pool.take(BYTES);
    CudaLane lane = CudaLane.open(device, "late", Duration.ofMillis(100), Priority.NORMAL);
    pause(true);
    Event event = lane.submit("work", () -> lane.stream().clear(memory.address(), BYTES));
    memory.usedUntil(event);
    event.awaitRecorded(deadline());
    Thread closer = new Thread(lane::close);
    closer.start();
    await().until(() -> event.state() == State.FAILED);
    memory.close();
    assertThat(pool.takenBytes()).isPositive();
    pause(false);
    closer.join(30_000);
    assertThat(event.failure().orElseThrow()).hasMessageContaining("did not end within");
    assertThat(pool.takenBytes()).isZero();
    pool.close();
  }

  /** Enqueued work whose progress is unknown. */
  @Test
  @UsesDoubles
  void memoryOfWorkWithoutAMarkIsKeptUntilTheStreamIsIdle() {
    CudaMemoryPool pool = CudaMemoryPool.open(device, CudaMemoryPool.Kind.DEVICE, 1 << 20);
    CudaMemory memory = pool.take(BYTES);
    CudaLane lane = lane("unmarked");
    pause(true);
    DoubleLibraries.cudaControls().cudaDoubleFailEvents(1);
    Event event = lane.submit("work", () -> lane.stream().clear(memory.address(), BYTES));
    memory.usedUntil(event);
    await().until(() -> event.state() == State.FAILED);
    memory.close();
    assertThat(pool.takenBytes()).isPositive();
    pause(false);
    lane.close();
    assertThat(event.failure().orElseThrow()).hasMessageContaining("cuEventCreate");
    assertThat(pool.takenBytes()).isZero();
    pool.close();
  }

  /** Work that still enqueues would use a closed stream. */
  @Test
  void closeByAnInterruptedThreadWaitsForEnqueuingWork() throws Exception {
    CountDownLatch started = new CountDownLatch(1);
    CountDownLatch going = new CountDownLatch(1);
    CudaLane lane = lane("enqueuing");
    Event event =
        lane.submit(
            "enqueuing",
            () -> {
              started.countDown();
              going.await(30, TimeUnit.SECONDS);
            });
    assertThat(started.await(30, TimeUnit.SECONDS)).isTrue();
    Thread closer =
        new Thread(
            () -> {
              Thread.currentThread().interrupt();
              lane.close();
            });
    closer.start();
    closer.join(200);
    assertThat(closer.isAlive()).isTrue();
    going.countDown();
    closer.join(30_000);
    assertThat(event.state()).isEqualTo(State.COMPLETE);
    lane.close();
  }

  /** A close in a listener of an event, on a thread that the close must wait for. */
  @ParameterizedTest
  @UsesDoubles
  @ValueSource(booleans = {false, true})
  void closeOnItsOwnThreadDoesNotWaitForItself(boolean isCompleter) throws Exception {
    CudaLane lane = lane("own");
    pause(true);
    CompletableFuture<Void> closed = new CompletableFuture<>();
    Runnable close =
        () -> {
          lane.close();
          closed.complete(null);
        };
    Event first = lane.submit("first", isCompleter ? () -> {} : close::run);
    Event second = isCompleter ? lane.submit("second", () -> {}) : first;
    if (isCompleter) {
      first.whenDone(cause -> close.run());
      second.awaitRecorded(deadline());
    }
    pause(false);
    closed.get(15, TimeUnit.SECONDS);
    second.await(deadline());
    assertThat(isRefusing(lane)).isTrue();
    await().until(() -> !DoubleLibraries.live().contains("streams"));
  }

  @Test
  void closingFailsWorkThatHasNotStarted() throws Exception {
    CountDownLatch started = new CountDownLatch(1);
    CountDownLatch closing = new CountDownLatch(1);
    CudaLane lane = lane("closing");
    Event running =
        lane.submit(
            "running",
            () -> {
              started.countDown();
              closing.await(30, TimeUnit.SECONDS);
            });
    Event waiting = lane.submit("waiting", () -> {});
    assertThat(started.await(30, TimeUnit.SECONDS)).isTrue();
    Thread closer = new Thread(lane::close);
    closer.start();
    await().until(() -> waiting.state() == State.FAILED);
    closing.countDown();
    closer.join(30_000);
    assertThat(running.state()).isEqualTo(State.COMPLETE);
    assertThatThrownBy(() -> lane.submit("late", () -> {})).hasMessageContaining("closed");
  }

  @Test
  @UsesDoubles
  void priorityIsTheStreams() {
    try (CudaLane high = lane("high");
        CudaLane normal = CudaLane.open(device, "normal", TIMEOUT, Priority.NORMAL)) {
      DoubleLibraries.CudaControls controls = DoubleLibraries.cudaControls();
      assertThat(controls.cudaDoublePriority(new Pointer(high.stream().handle()))).isEqualTo(-5);
      assertThat(controls.cudaDoublePriority(new Pointer(normal.stream().handle()))).isZero();
    }
  }
}
