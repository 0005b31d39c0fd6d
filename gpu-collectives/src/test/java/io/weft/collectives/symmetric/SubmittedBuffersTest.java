package io.weft.collectives.symmetric;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.weft.collectives.AllReduce;
import io.weft.collectives.BufferOwner;
import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveException.Kind;
import io.weft.collectives.Communicator;
import io.weft.collectives.DataType;
import io.weft.collectives.Operation;
import io.weft.collectives.ReduceOp;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.contract.RankGang;
import io.weft.collectives.contract.Values;
import io.weft.device.Event;
import io.weft.device.HostLane;
import io.weft.device.Lane;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A submitted operation whose memory is freed: before, during, or after the submission. */
class SubmittedBuffersTest {
  private static final int COUNT = 5000;
  private static final long BYTES = 4L * COUNT;

  @TempDir Path folder;

  private SymmetricArena arena(Communicator communicator) {
    return SymmetricArena.open(
        communicator,
        SymmetricOptions.in(folder.resolve("symmetric"))
            .withSegmentBytes(1 << 20)
            .withPoison(true));
  }

  private static Operation sum(TypedBuffer data) {
    return new AllReduce(data, data, ReduceOp.SUM);
  }

  /** The next window reuses freed memory and poisons it. */
  @Test
  void windowClosedAfterTheSubmissionIsKeptUntilTheOperationHasEnded() {
    CountDownLatch go = new CountDownLatch(1);
    try (RankGang memory = Gangs.host(folder.resolve("memory"), 2);
        RankGang work = Gangs.host(folder.resolve("work"), 2)) {
      memory.run(
          communicator -> {
            Communicator worker = work.rank(communicator.rank());
            try (SymmetricArena arena = arena(communicator);
                Lane lane = HostLane.open("kept-" + worker.rank(), Duration.ofSeconds(60))) {
              Window first = arena.window(BYTES);
              TypedBuffer data = first.buffer(DataType.INT32);
              Values.fill(data, worker.rank());
              try (Window second = closeAfterSubmission(arena, first, data, worker, lane, go)) {
                assertThat(second.address()).isNotEqualTo(data.address());
              }
              Values.check("kept", data, i -> Values.reduced(DataType.INT32, ReduceOp.SUM, 2, i));
              communicator.barrier();
              try (Window third = arena.window(BYTES)) {
                assertThat(third.address()).isEqualTo(data.address());
              }
              communicator.barrier();
            }
          });
    }
  }

  /** Submits after work that blocks, closes the window, and requests another one meanwhile. */
  private static Window closeAfterSubmission(
      SymmetricArena arena,
      Window window,
      TypedBuffer data,
      Communicator worker,
      Lane lane,
      CountDownLatch go) {
    Event blocked =
        lane.submit("a delay", () -> assertThat(go.await(60, TimeUnit.SECONDS)).isTrue());
    Event sum = worker.submit(sum(data), lane);
    window.close();
    Window second;
    try {
      second = arena.window(BYTES);
    } finally {
      go.countDown();
    }
    blocked.await(Gangs.soon());
    sum.await(Gangs.soon());
    lane.drain(Gangs.soon());
    return second;
  }

  @ParameterizedTest
  @ValueSource(strings = {"run", "group", "submit", "submitGroup"})
  void memoryThatWasFreedBeforeIsRefused(String how) {
    try (RankGang gang = Gangs.local(2)) {
      gang.run(
          communicator -> {
            try (SymmetricArena arena = arena(communicator)) {
              Window window = arena.window(BYTES);
              TypedBuffer data = window.buffer(DataType.INT32);
              window.close();
              checkRefused(() -> start(how, communicator, sum(data), refusing()));
            }
            communicator.barrier();
          });
    }
  }

  private static void start(String how, Communicator communicator, Operation operation, Lane lane) {
    switch (how) {
      case "run" -> communicator.run(operation);
      case "group" -> communicator.runGroup(List.of(operation));
      case "submit" -> communicator.submit(operation, lane);
      default -> communicator.submitGroup(List.of(operation), lane);
    }
  }

  private static void checkRefused(Runnable start) {
    CollectiveException refusal = catchThrowableOfType(CollectiveException.class, start::run);
    assertThat(refusal).hasMessageContaining("was freed");
    assertThat(refusal.kind()).isEqualTo(Kind.INVALID);
  }

  /** Another thread frees the memory after the check and before the lease. */
  @ParameterizedTest
  @ValueSource(strings = {"submit", "submitGroup"})
  void nothingIsQueuedWhenMemoryIsFreedBetweenTheCheckAndTheLane(String how) {
    try (RankGang gang = Gangs.local(2)) {
      gang.run(
          communicator -> {
            Lending kept = new Lending(false);
            Lending freed = new Lending(true);
            Operation operation = new AllReduce(kept.buffer(), freed.buffer(), ReduceOp.SUM);
            checkRefused(() -> start(how, communicator, operation, refusing()));
            assertThat(kept.uses).hasSize(1);
            assertThat(kept.uses.get(0).state()).isEqualTo(Event.State.COMPLETE);
            communicator.barrier();
          });
    }
  }

  @Test
  void buffersAreReleasedWhenTheLaneRefuses() {
    try (RankGang gang = Gangs.local(1)) {
      Lane lane = HostLane.open("closed", Duration.ofSeconds(60));
      lane.close();
      Lending lent = new Lending(false);
      catchThrowableOfType(
          IllegalStateException.class, () -> gang.rank(0).submit(sum(lent.buffer()), lane));
      assertThat(lent.uses)
          .isNotEmpty()
          .allSatisfy(use -> assertThat(use.state()).isEqualTo(Event.State.COMPLETE));
      gang.rank(0).barrier();
    }
  }

  /** Memory whose owner may be closed before the lease is taken. */
  private static final class Lending implements BufferOwner {
    private final ByteBuffer memory = ByteBuffer.allocateDirect((int) BYTES);
    private final boolean freedAfterTheCheck;
    private final List<Event> uses = new ArrayList<>();

    private Lending(boolean freedAfterTheCheck) {
      this.freedAfterTheCheck = freedAfterTheCheck;
    }

    private TypedBuffer buffer() {
      return TypedBuffer.of(this, 0, DataType.INT32, COUNT);
    }

    @Override
    public long address() {
      return TypedBuffer.wrap(memory, DataType.INT32).address();
    }

    @Override
    public long bytes() {
      return BYTES;
    }

    @Override
    public void usedUntil(Event event) {
      if (freedAfterTheCheck) {
        throw new IllegalStateException("closed meanwhile");
      }
      uses.add(event);
    }
  }

  /** A lane that fails the test on every call. */
  private static Lane refusing() {
    return (Lane)
        Proxy.newProxyInstance(
            Lane.class.getClassLoader(),
            new Class<?>[] {Lane.class},
            (lane, method, arguments) -> {
              throw new AssertionError(method.getName() + " reached the lane");
            });
  }
}
