package io.weft.collectives.nccl;

import io.weft.device.cuda.CudaMemory;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;

/** Memory of each rank that the devices of all ranks access directly. Thread-safe. */
final class SharedWindow implements AutoCloseable {
  private final ReachableMemory window;
  private final Consumer<ReachableMemory> end;
  private final AtomicBoolean closed = new AtomicBoolean();

  /**
   * Owned by a communicator.
   *
   * @param end ends the window on this rank
   */
  SharedWindow(ReachableMemory window, Consumer<ReachableMemory> end) {
    this.window = window;
    this.end = end;
  }

  /** The memory of this rank. */
  public CudaMemory memory() {
    return window.memory();
  }

  /**
   * Ends the window on all ranks together, in the order of their operations. If the communicator is
   * broken or closed, ends it on this rank only.
   */
  @Override
  public void close() {
    if (closed.compareAndSet(false, true)) {
      end.accept(window);
    }
  }
}
