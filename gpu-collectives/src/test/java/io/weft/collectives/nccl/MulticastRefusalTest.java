package io.weft.collectives.nccl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveException.Kind;
import io.weft.collectives.CommunicatorFactory;
import io.weft.collectives.contract.RankGang;
import io.weft.collectives.host.HostCommunicators;
import io.weft.collectives.host.HostOptions;
import io.weft.device.DoubleLibraries;
import io.weft.device.UsesDoubles;
import io.weft.device.cuda.CudaDevice;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.CudaMemoryPool;
import io.weft.device.cuda.CudaMemorySource;
import io.weft.device.cuda.VirtualMemory;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Memory that cannot be shared by multicast: all ranks learn why, and the communicator stays
 * usable.
 */
@UsesDoubles
class MulticastRefusalTest extends MulticastGangs {
  /** Gives rank 0 other memory, and checks that the communicator stays usable. */
  private static void assertRefused(
      RankGang gang, Function<CudaDevice, CudaMemorySource> first, long bytes, String reason) {
    gang.run(
        communicator -> {
          boolean isFirst = communicator.rank() == 0;
          CudaDevice device = GpuDoubles.device(communicator.rank());
          CudaMemorySource source =
              isFirst ? first.apply(device) : VirtualMemory.forMulticast(device);
          try (CudaMemoryPool pool = CudaMemoryPool.open(device, source, 8 << 20);
              CudaMemory memory = pool.take(isFirst ? bytes : 1000)) {
            CollectiveException failure =
                catchThrowableOfType(CollectiveException.class, () -> share(communicator, memory));
            assertThat(failure.kind()).isEqualTo(Kind.INVALID);
            assertThat(failure).hasMessageContaining(reason);
          }
          communicator.barrier();
        });
  }

  private static void assertRefused(RankGang gang, String reason) {
    assertRefused(gang, VirtualMemory::forMulticast, 1000, reason);
  }

  @Test
  void otherMemoryIsRefusedOnAllRanks() {
    try (RankGang gang = gang(3, LONG)) {
      assertRefused(
          gang,
          VirtualMemory::of,
          1000,
          "rank 0 cannot share memory by multicast: virtual device memory cannot be written");
      assertRefused(
          gang, device -> CudaMemoryPool.Kind.DEVICE, 1000, "device memory cannot be written by");
      assertRefused(
          gang, VirtualMemory::forMulticast, 999, "rank 0 shares 999 bytes by multicast but rank");
    }
  }

  @Test
  void rankWithoutMulticastIsNamedOnAllRanks() {
    try (RankGang gang = gang(3, LONG)) {
      List<Buffers> buffers = gang.ask(Buffers::of);
      DoubleLibraries.cudaControls().cudaDoubleMulticast(EVERY & ~2);
      gang.run(
          communicator ->
              assertThatThrownBy(
                      () -> share(communicator, buffers.get(communicator.rank()).receive()))
                  .hasMessageContaining(
                      "rank 1 cannot share memory by multicast: the driver offers")
                  .hasMessageContaining("no multicast on cuda:1"));
      gang.run(communicator -> gather(communicator, buffers.get(communicator.rank()), 0));
      buffers.forEach(Buffers::close);
    }
  }

  @Test
  void ranksOnTwoHostsAreRefused() {
    List<CommunicatorFactory> factories = new ArrayList<>();
    for (int rank = 0; rank < 2; rank++) {
      HostOptions options =
          HostOptions.defaults().withFolder(folder).withHostIdentity("host-" + rank);
      factories.add(GpuDoubles.factory(rank, new HostCommunicators(options)));
    }
    try (RankGang gang = RankGang.open(factories, LONG)) {
      assertRefused(gang, "the 2 ranks must be 2 to 16 and on one host");
    }
  }

  /** The first rank to arrive fails, after all have joined. No memory stays on any rank. */
  @ParameterizedTest
  @ValueSource(ints = {1, 2})
  void bindingThatFailsIsARefusal(int bindings) {
    try (RankGang gang = gang(3, LONG)) {
      List<Buffers> buffers = gang.ask(Buffers::of);
      DoubleLibraries.cudaControls().cudaDoubleFailBindings(bindings);
      gang.run(
          communicator ->
              assertThatThrownBy(
                      () -> share(communicator, buffers.get(communicator.rank()).receive()))
                  .hasMessageContaining("cannot share memory by multicast: binding 4.0 MiB")
                  .hasMessageContaining("CUDA_ERROR_OUT_OF_MEMORY"));
      gang.run(
          communicator -> {
            Buffers own = buffers.get(communicator.rank());
            try (SharedWindow window = share(communicator, own.receive())) {
              gather(communicator, own, 0);
              assertThat(window.memory()).isSameAs(own.receive());
            }
          });
      buffers.forEach(Buffers::close);
    }
  }

  @Test
  void driverWithoutDescriptorsOfMemoryIsNamed() {
    try (RankGang gang = gang(2, LONG)) {
      List<Buffers> buffers = gang.ask(Buffers::of);
      DoubleLibraries.cudaControls().cudaDoubleDescriptors(0);
      gang.run(
          communicator ->
              assertThatThrownBy(
                      () -> share(communicator, buffers.get(communicator.rank()).receive()))
                  .hasMessageContaining(
                      "the driver gives no file descriptors for memory of cuda:"));
      buffers.forEach(Buffers::close);
    }
  }
}
