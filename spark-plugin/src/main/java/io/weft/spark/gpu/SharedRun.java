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

  /** The export keeps the memory from now on, whether this succeeds or not. */
  static SharedRun of(CudaMemory memory, Consumer<SharedRun> closed) {
    try (memory) {
      return new SharedRun(IpcExport.of(memory), closed);
    }
  }

  /** What the other processes are told. */
  public IpcHandle handle() {
    return export.handle();
  }

  /** Gives the memory back: nobody has it mapped any more. Can be repeated. */
  @Override
  public void close() {
    export.close();
    closed.accept(this);
  }
}
