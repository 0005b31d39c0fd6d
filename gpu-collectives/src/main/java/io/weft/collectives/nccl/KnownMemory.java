package io.weft.collectives.nccl;

import io.weft.collectives.fault.CollectiveException;
import io.weft.collectives.fault.CollectiveException.Kind;
import io.weft.collectives.peer.ReachableMemory;
import io.weft.device.Deadline;
import io.weft.device.cuda.CudaMemory;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;

/**
 * Opens and ends memory that the other ranks can access, through NCCL or their devices. If one rank
 * refuses, all ranks give up, and the communicator stays usable.
 */
final class KnownMemory {
  private final NcclCommunicator communicator;

  KnownMemory(NcclCommunicator communicator) {
    this.communicator = communicator;
  }

  private List<NcclSide> sides() {
    return List.of(communicator.side(true), communicator.side(false));
  }

  /** See {@link DeviceCommunicator#register}. */
  DeviceWindow register(CudaMemory memory) {
    AtomicReference<DeviceWindow> registered = new AtomicReference<>();
    AtomicReference<CollectiveException> refusal = new AtomicReference<>();
    communicator.inTurn(
        "registering a window",
        deadline -> {
          WindowAgreement.refusal(
                  communicator.host(), communicator.nccl().device(), memory, deadline)
              .ifPresent(refusal::set);
          if (refusal.get() == null) {
            registered.set(register(new DeviceWindow(memory, this::deregister), deadline));
          }
        });
    if (refusal.get() != null) {
      throw refusal.get();
    }
    return registered.get();
  }

  private DeviceWindow register(DeviceWindow window, Deadline deadline) {
    try {
      for (NcclSide side : sides()) {
        communicator.run(
            side, "registering a window", () -> side.engine().register(window, deadline));
      }
      return window;
    } catch (RuntimeException e) {
      window.close();
      throw e;
    }
  }

  private void deregister(DeviceWindow window) {
    for (NcclSide side : sides()) {
      try {
        NcclSide.settle(
            side.lane().submit("ending a window", () -> side.engine().deregister(window)));
      } catch (IllegalStateException e) {
        // The communicator was closed, which ended its windows too.
      }
    }
  }

  /** See {@link DeviceCommunicator#share}. */
  SharedWindow share(CudaMemory memory) {
    return share(memory, "sharing memory", NcclEngine::share);
  }

  /** See {@link DeviceCommunicator#shareByMulticast}. */
  SharedWindow shareByMulticast(CudaMemory memory) {
    return share(memory, "sharing memory by multicast", NcclEngine::shareByMulticast);
  }

  /** A way to share memory. */
  private interface Sharing {
    ReachableMemory run(NcclEngine engine, CudaMemory memory, Deadline deadline);
  }

  private SharedWindow share(CudaMemory memory, String what, Sharing sharing) {
    AtomicReference<ReachableMemory> shared = new AtomicReference<>();
    AtomicReference<CollectiveException> refusal = new AtomicReference<>();
    NcclSide side = communicator.side(true);
    communicator.inTurn(
        what,
        deadline ->
            communicator.run(
                side,
                what,
                () -> {
                  try {
                    shared.set(sharing.run(side.engine(), memory, deadline));
                  } catch (CollectiveException e) {
                    if (e.kind() != Kind.INVALID) {
                      throw e;
                    }
                    refusal.set(e);
                  }
                }));
    if (refusal.get() != null) {
      throw refusal.get();
    }
    return new SharedWindow(shared.get(), this::unshare);
  }

  private void unshare(ReachableMemory window) {
    NcclSide side = communicator.side(true);
    try {
      communicator.inTurn(
          "ending shared memory",
          deadline ->
              communicator.run(side, "ending shared memory", () -> side.engine().unshare(window)));
    } catch (CollectiveException e) {
      try {
        NcclSide.settle(
            side.lane()
                .submit(
                    "leaving", () -> side.engine().leave(window, communicator.nccl().linger())));
      } catch (IllegalStateException closed) {
        // The communicator was closed, which ended the shared memory too.
      }
    }
  }
}
