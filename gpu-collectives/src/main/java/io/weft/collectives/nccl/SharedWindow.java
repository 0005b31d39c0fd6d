package io.weft.collectives.nccl;

import io.weft.collectives.peer.ReachableMemory;
import io.weft.device.cuda.CudaMemory;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;

/** Memory of each rank that the devices of all reach by themselves. Thread-safe. */
public final class SharedWindow implements AutoCloseable {
  private final ReachableMemory window;
  private final Consumer<ReachableMemory> end;
  private final AtomicBoolean closed = new AtomicBoolean();

  /**
   * Belongs to a communicator.
   *
   * @param end ends it on this rank
   */
  SharedWindow(ReachableMemory window, Consumer<ReachableMemory> end) {
    this.window = window;
    this.end = end;
  }

  /** This rank's own part. */
  public CudaMemory memory() {
    return window.memory();
  }

  /**
   * Ends it, on all ranks together, in the order of their operations; where the communicator is
   * broken or closed, on this rank.
   */
  @Override
  public void close() {
    if (closed.compareAndSet(false, true)) {
      end.accept(window);
    }
  }
}
