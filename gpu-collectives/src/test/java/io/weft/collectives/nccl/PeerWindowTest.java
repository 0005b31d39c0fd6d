package io.weft.collectives.nccl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveException.Kind;
import io.weft.collectives.Communicator;
import io.weft.collectives.contract.RankGang;
import io.weft.collectives.local.LocalCommunicator;
import io.weft.device.Deadline;
import io.weft.device.DoubleLibraries;
import io.weft.device.Lane.Priority;
import io.weft.device.UsesDoubles;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.CudaMemoryPool;
import io.weft.device.cuda.CudaStream;
import io.weft.memory.Memory;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Memory of two GPUs of one process that each other accesses: refusals, writes and the end. */
@UsesDoubles
class PeerWindowTest {
  private static final Duration LONG = Duration.ofSeconds(60);
  private static final int BYTES = 4096;

  @AfterEach
  void nothingIsLeaked() {
    DoubleLibraries.cudaControls().cudaDoubleUnreachable(0);
    GpuDoubles.closeDevices();
    DoubleLibraries.assertClean();
  }

  /** A stream and memory of one rank. */
  private record Resources(CudaStream stream, CudaMemoryPool pool, CudaMemory memory)
      implements AutoCloseable {
    static Resources of(int gpu, CudaMemoryPool.Kind kind) {
      CudaMemoryPool pool = CudaMemoryPool.open(GpuDoubles.device(gpu), kind, 1 << 20);
      CudaStream stream = CudaStream.open(GpuDoubles.device(gpu), "test", Priority.NORMAL);
      return new Resources(stream, pool, pool.take(BYTES));
    }

    PeerWindow open(Communicator hosts) {
      return PeerWindow.open(hosts, memory, stream, Deadline.after(LONG));
    }

    @Override
    public void close() {
      memory.close();
      pool.close();
      stream.close();
    }
  }

  /** The rank that departs first keeps its memory until the other one has departed. */
  @Test
  void memoryStaysUntilBothHaveDeparted() {
    try (RankGang gang = RankGang.open(LocalCommunicator::create, 2, LONG)) {
      gang.run(
          hosts -> {
            int rank = hosts.rank();
            try (Resources own = Resources.of(rank, CudaMemoryPool.Kind.DEVICE)) {
              PeerWindow window = own.open(hosts);
              own.stream().clear(own.memory().address(), BYTES);
              assertThat(own.stream().awaitIdle(Deadline.after(LONG))).isTrue();
              hosts.barrier();
              long other = window.address(1 - rank);
              assertThat(Memory.getByte(other)).isZero();
              if (rank == 0) {
                own.stream().copyOnDevice(other, own.memory().address(), BYTES);
                window.depart(Deadline.after(LONG));
                assertThat(window.tryRelease(Deadline.after(LONG))).isFalse();
              }
              hosts.barrier();
              if (rank == 1) {
                window.depart(Deadline.after(LONG));
                window.depart(Deadline.after(LONG));
              }
              hosts.barrier();
              assertThat(window.tryRelease(Deadline.after(LONG))).isTrue();
              assertThat(window.tryRelease(Deadline.after(LONG))).isTrue();
              hosts.barrier();
            }
          });
    }
  }

  private static List<CollectiveException> refusals(int gpuOfTheFirst, CudaMemoryPool.Kind kind) {
    try (RankGang gang = RankGang.open(LocalCommunicator::create, 2, LONG)) {
      return gang.ask(
          hosts -> {
            boolean isFirst = hosts.rank() == 0;
            try (Resources own =
                Resources.of(
                    isFirst ? gpuOfTheFirst : 1, isFirst ? kind : CudaMemoryPool.Kind.DEVICE)) {
              return catchThrowableOfType(CollectiveException.class, () -> own.open(hosts));
            }
          });
    }
  }

  @Test
  void gpusThatCannotReachEachOtherAreRefusedOnBothRanks() {
    DoubleLibraries.cudaControls().cudaDoubleUnreachable(1);
    assertThat(refusals(0, CudaMemoryPool.Kind.DEVICE))
        .allSatisfy(
            refusal -> {
              assertThat(refusal.kind()).isEqualTo(Kind.INVALID);
              assertThat(refusal).hasMessageContaining("cannot share memory: ");
            });
  }

  @Test
  void memoryThatCannotBeExportedIsRefusedOnBothRanks() {
    assertThat(refusals(0, CudaMemoryPool.Kind.PINNED))
        .allSatisfy(
            refusal ->
                assertThat(refusal).hasMessageContaining("rank 0 cannot share memory: pinned"));
  }
}
