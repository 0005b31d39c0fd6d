package io.weft.collectives.nccl;

import io.weft.device.HostEvent;
import io.weft.device.cuda.CudaMemory;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;

/** Memory registered with NCCL as a window on all ranks of a communicator. Thread-safe. */
final class DeviceWindow implements AutoCloseable {
  private final CudaMemory memory;
  private final Consumer<DeviceWindow> end;
  private final HostEvent use = new HostEvent("a window of NCCL");
  private final AtomicBoolean closed = new AtomicBoolean();
  private volatile boolean isUnused;

  /**
   * Takes a lease on the memory.
   *
   * @param end deregisters the window from NCCL
   */
  DeviceWindow(CudaMemory memory, Consumer<DeviceWindow> end) {
    this.memory = memory;
    this.end = end;
    memory.usedUntil(use);
  }

  /** The registered memory. */
  public CudaMemory memory() {
    return memory;
  }

  /** NCCL gave no handle to this rank. */
  void unused() {
    isUnused = true;
  }

  /** Why NCCL does not use the window on this rank; empty if it does. */
  Optional<String> whyUnused() {
    return isUnused ? Optional.of("NCCL cannot use windows between these GPUs") : Optional.empty();
  }

  /** Ends the window on this rank. */
  @Override
  public void close() {
    if (closed.compareAndSet(false, true)) {
      try {
        end.accept(this);
      } finally {
        use.complete();
      }
    }
  }
}
