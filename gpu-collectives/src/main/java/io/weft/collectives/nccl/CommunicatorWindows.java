package io.weft.collectives.nccl;

import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveException.Kind;
import io.weft.collectives.Communicator;
import io.weft.collectives.bootstrap.BootstrapRounds;
import io.weft.collectives.bootstrap.CommunicatorBootstrap;
import io.weft.collectives.nccl.NcclEnginePair.NcclEngineLane;
import io.weft.device.Deadline;
import io.weft.device.cuda.CudaDevice;
import io.weft.device.cuda.CudaMemory;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Optional;

/**
 * Registers memory with NCCL as windows, and ends them. If one rank refuses, all ranks do, and the
 * communicator stays usable.
 */
final class CommunicatorWindows {
  private final NcclCommunicator communicator;

  CommunicatorWindows(NcclCommunicator communicator) {
    this.communicator = communicator;
  }

  private List<NcclEngineLane> sides() {
    return List.of(communicator.side(true), communicator.side(false));
  }

  /** A window, or the reason why all ranks refuse it; the other one is null. */
  record Registration(DeviceWindow window, CollectiveException refusal) {
    /** Why NCCL uses its own buffers; empty if it uses the window. */
    Optional<String> whyNoWindow() {
      return refusal == null ? window.whyUnused() : Optional.of(refusal.getMessage());
    }
  }

  /**
   * Registers memory for a caller who has the turn. All ranks call it together. Operations on
   * buffers in a window bypass NCCL's own buffers where NCCL can do so.
   *
   * @param memory of this rank's GPU and of {@link NcclMemory}; the first of its segment, which
   *     starts at a multiple of 4096; of the same size on all ranks
   */
  Registration registerInTurn(CudaMemory memory, Deadline deadline) {
    Optional<CollectiveException> refusal =
        WindowAgreement.refusal(
            communicator.host(), communicator.nccl().device(), memory, deadline);
    return refusal.isPresent()
        ? new Registration(null, refusal.get())
        : new Registration(register(new DeviceWindow(memory, this::deregister), deadline), null);
  }

  private DeviceWindow register(DeviceWindow window, Deadline deadline) {
    try {
      for (NcclEngineLane side : sides()) {
        communicator.run(
            side, "registering a window", () -> side.engine().register(window, deadline));
      }
      return window;
    } catch (RuntimeException e) {
      window.close();
      throw e;
    }
  }

  /** Ends a window for a caller who has the turn. Collective. A failure breaks the communicator. */
  void endInTurn(DeviceWindow window) {
    for (NcclEngineLane side : sides()) {
      communicator.run(side, "ending a window", () -> side.engine().deregister(window));
    }
    window.close();
  }

  private void deregister(DeviceWindow window) {
    for (NcclEngineLane side : sides()) {
      try {
        NcclEngineLane.settle(
            side.lane().submit("ending a window", () -> side.engine().deregister(window)));
      } catch (IllegalStateException e) {
        // The communicator was closed, which ended its windows too.
      }
    }
  }

  /** Checks among the ranks that a window is valid, before NCCL registers it. Stateless. */
  static final class WindowAgreement {
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
                .exchange("ncclwindow", () -> encode(requireWindow(host, device, memory)))
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

    private static long requireWindow(Communicator host, CudaDevice device, CudaMemory memory) {
      int rank = host.rank();
      NcclLibrary.loaded()
          .whyNoWindows()
          .ifPresent(
              reason -> {
                throw invalid(rank, reason);
              });
      if (!(memory.source() instanceof NcclMemory)) {
        throw invalid(
            rank, memory.source().what() + " cannot be a window, only memory of NCCL can");
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
}
