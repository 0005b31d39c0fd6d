package io.weft.collectives.nccl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.weft.collectives.Algorithm;
import io.weft.collectives.Broadcast;
import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveException.Kind;
import io.weft.collectives.Communicator;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.contract.RankGang;
import io.weft.collectives.contract.Values;
import io.weft.device.DoubleLibraries;
import io.weft.device.UsesDoubles;
import io.weft.device.cuda.CudaMemory;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.Test;

/** Ranks and devices that are late for a multicast write, or do not end it. */
@UsesDoubles
class MulticastFailureTest extends MulticastGangs {
  /** The device waits only until the operation's timeout, and names the missing rank. */
  @Test
  void rankWhoseDeviceIsStuckIsNamed() throws Exception {
    try (RankGang gang = gang(3, Duration.ofSeconds(4))) {
      List<Buffers> buffers = gang.ask(Buffers::of);
      List<SharedWindow> windows =
          gang.ask(communicator -> share(communicator, buffers.get(communicator.rank()).receive()));
      gang.run(communicator -> gather(communicator, buffers.get(communicator.rank()), 0));
      DoubleLibraries.cudaControls().cudaDoubleHold(2);
      List<Future<CollectiveException>> failures =
          gang.askAsync(
              communicator ->
                  catchThrowableOfType(
                      CollectiveException.class,
                      () -> gather(communicator, buffers.get(communicator.rank()), 0)));
      CollectiveException failure = failures.get(0).get(30, TimeUnit.SECONDS);
      DoubleLibraries.cudaControls().cudaDoubleHold(-1);
      assertThat(failure.kind()).isEqualTo(Kind.TIMEOUT);
      assertThat(failure.ranks()).containsExactly(2);
      assertThat(failure).hasMessageMatching(".*rank [01] waited on its device for rank 2.*");
      for (Future<CollectiveException> each : failures) {
        assertThat(each.get(30, TimeUnit.SECONDS)).isNotNull();
      }
      gang.run(communicator -> windows.get(communicator.rank()).close());
      buffers.forEach(Buffers::close);
      buffers.forEach(each -> assertThat(each.pool().takenBytes()).isZero());
    }
  }

  /** Until then the memory is bound, and the pool must not reuse it. */
  @Test
  void memoryIsFreedOnceItIsUnbound() {
    List<Buffers> buffers;
    List<SharedWindow> windows;
    try (RankGang gang = gang(2, LONG)) {
      buffers = gang.ask(Buffers::of);
      windows =
          gang.ask(communicator -> share(communicator, buffers.get(communicator.rank()).receive()));
      buffers.forEach(each -> each.receive().close());
      DoubleLibraries.cudaControls().cudaDoubleFailUnbindings(1);
      gang.run(communicator -> windows.get(communicator.rank()).close());
      assertThat(gang.rank(0).failure().orElseThrow()).hasMessageContaining("unbinding memory");
    }
    buffers.forEach(each -> assertThat(each.pool().takenBytes()).isZero());
    buffers.forEach(Buffers::close);
  }

  /**
   * The next operation must not overwrite slots that a rank has not read yet. Only the barrier of
   * the devices holds the other rank back.
   */
  @Test
  void slotsStayUntilAllHaveReadThem() throws Exception {
    try (RankGang gang = gang(2, LONG)) {
      List<Buffers> buffers = gang.ask(Buffers::of);
      List<SharedWindow> windows =
          gang.ask(communicator -> share(communicator, buffers.get(communicator.rank()).receive()));
      DoubleLibraries.CudaControls controls = DoubleLibraries.cudaControls();
      int before = barriersAndWrites(controls);
      controls.cudaDoubleHoldKernel(1, "weft_multicast_ends");
      List<Future<Void>> groups =
          gang.askAsync(
              communicator -> {
                twoUnalignedBroadcasts(communicator, buffers.get(communicator.rank()));
                return null;
              });
      try {
        Awaitility.await().until(() -> barriersAndWrites(controls) == before + 4);
      } finally {
        controls.cudaDoubleHoldKernel(-1, "");
      }
      for (Future<Void> each : groups) {
        each.get(60, TimeUnit.SECONDS);
      }
      gang.run(communicator -> windows.get(communicator.rank()).close());
      buffers.forEach(Buffers::close);
    }
  }

  /**
   * Counts the launches of rank 0, which is in the third barrier after the fourth write. Without
   * the first barrier of an operation, it would be in the second barrier after two writes.
   */
  private static int barriersAndWrites(DoubleLibraries.CudaControls controls) {
    return controls.cudaDoubleRuns(0, "weft_peer_barrier")
        + controls.cudaDoubleRuns(0, "weft_multicast_write");
  }

  private static void twoUnalignedBroadcasts(Communicator communicator, Buffers buffers) {
    try (CudaMemory memory = buffers.plain().take(8 * COUNT)) {
      TypedBuffer one = ints(memory, 0, COUNT);
      TypedBuffer other = ints(memory, 4 * COUNT, COUNT);
      Values.fill(one, 10 + communicator.rank());
      Values.fill(other, 20 + communicator.rank());
      TypedBuffer here = ints(buffers.receive(), 12, COUNT);
      TypedBuffer there = ints(buffers.receive(), (1 << 20) + 8, COUNT);
      communicator.runGroup(List.of(new Broadcast(one, here, 0), new Broadcast(other, there, 0)));
      assertThat(calls(communicator, Algorithm.MULTICAST)).isEqualTo(2);
      Values.check("first", here, i -> Values.of(10, i));
      Values.check("second", there, i -> Values.of(20, i));
    }
  }
}
