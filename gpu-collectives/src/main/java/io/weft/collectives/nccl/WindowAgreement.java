package io.weft.collectives.nccl;

import io.weft.collectives.Communicator;
import io.weft.collectives.bootstrap.BootstrapRounds;
import io.weft.collectives.bootstrap.CommunicatorBootstrap;
import io.weft.collectives.fault.CollectiveException;
import io.weft.collectives.fault.CollectiveException.Kind;
import io.weft.device.Deadline;
import io.weft.device.cuda.CudaDevice;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.VirtualMemory;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Optional;

/** Checks among the ranks that a window is valid, before NCCL registers it. Stateless. */
final class WindowAgreement {
  private static final int ALIGNMENT = 4096;

  private WindowAgreement() {}

  /**
   * Agrees on one window.
   *
   * @param device of this rank
   * @return why all ranks reject it; empty if all have the same window
   */
  static Optional<CollectiveException> refusal(
      Communicator host, CudaDevice device, CudaMemory memory, Deadline deadline) {
    BootstrapRounds rounds = new BootstrapRounds(new CommunicatorBootstrap(host), deadline);
    try {
      List<Long> sizes =
          rounds
              .exchange("ncclwindow", () -> encode(requireWindow(host.rank(), device, memory)))
              .stream()
              .map(message -> ByteBuffer.wrap(message).getLong())
              .toList();
      return difference(sizes);
    } catch (CollectiveException e) {
      if (e.kind() == Kind.INVALID) {
        return Optional.of(e);
      }
      throw e;
    }
  }

  private static byte[] encode(long bytes) {
    return ByteBuffer.allocate(Long.BYTES).putLong(bytes).array();
  }

  private static long requireWindow(int rank, CudaDevice device, CudaMemory memory) {
    NcclLibrary.loaded()
        .whyNoWindows()
        .ifPresent(
            reason -> {
              throw invalid(rank, reason);
            });
    if (!(memory.source() instanceof NcclMemory || memory.source() instanceof VirtualMemory)) {
      throw invalid(rank, memory.source().what() + " cannot be a window, only memory of NCCL can");
    }
    if (!memory.device().device().equals(device.device())) {
      throw invalid(rank, "the memory is of " + memory.device() + ", the rank on " + device);
    }
    if (memory.address() % ALIGNMENT != 0) {
      throw invalid(
          rank,
          "a window starts at a multiple of " + ALIGNMENT + ": allocate it as a whole segment");
    }
    return memory.bytes();
  }

  private static CollectiveException invalid(int rank, String reason) {
    return new CollectiveException(
        Kind.INVALID, List.of(rank), "rank " + rank + " cannot register a window: " + reason);
  }

  private static Optional<CollectiveException> difference(List<Long> sizes) {
    for (int rank = 1; rank < sizes.size(); rank++) {
      if (!sizes.get(rank).equals(sizes.get(0))) {
        return Optional.of(
            new CollectiveException(
                Kind.MISMATCH,
                List.of(0, rank),
                "rank 0 registers a window of "
                    + sizes.get(0)
                    + " bytes but rank "
                    + rank
                    + " one of "
                    + sizes.get(rank)));
      }
    }
    return Optional.empty();
  }
}
