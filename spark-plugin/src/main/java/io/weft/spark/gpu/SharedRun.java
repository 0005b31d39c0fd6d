package io.weft.spark.gpu;

import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.IpcExport;
import io.weft.device.cuda.IpcHandle;
import java.util.function.Consumer;

/** Device memory that other processes of the host may map. Thread-safe. */
public final class SharedRun implements AutoCloseable {
  private final IpcExport export;
  private final Consumer<SharedRun> closed;

  private SharedRun(IpcExport export, Consumer<SharedRun> closed) {
    this.export = export;
    this.closed = closed;
  }

  /** Exports the memory. The export owns the memory from now on, even if this fails. */
  static SharedRun of(CudaMemory memory, Consumer<SharedRun> closed) {
    try (memory) {
      return new SharedRun(IpcExport.of(memory), closed);
    }
  }

  /** The handle for the other processes. */
  public IpcHandle handle() {
    return export.handle();
  }

  /** Frees the memory; no process may have it mapped any more. Idempotent. */
  @Override
  public void close() {
    export.close();
    closed.accept(this);
  }
}
