package io.weft.spark.gpu.jcuda;

import io.weft.device.Event;
import io.weft.device.cuda.CudaMemory;
import io.weft.spark.gpu.DeviceWork;
import java.util.ArrayList;
import java.util.List;
import jcuda.driver.CUdeviceptr;
import jcuda.driver.CUfunction;
import jcuda.driver.CUstream;
import org.apache.spark.sql.types.StructType;

/**
 * The stream, memory and kernels of one call of a {@link JcudaFunction}. For the thread of the
 * call, and until its end.
 */
public final class JcudaWork {
  private final DeviceWork work;
  private final CUstream stream;
  private final List<CudaMemory> taken = new ArrayList<>();
  private boolean ended;

  JcudaWork(DeviceWork work) {
    this.work = work;
    this.stream = JcudaPointers.stream(work.lane().stream().handle());
  }

  /** The stream for the function's work, which must not be destroyed. */
  public CUstream stream() {
    return stream;
  }

  /** The columns of the function's result. */
  public StructType schema() {
    return work.schema();
  }

  /**
   * Allocates memory of the executor's GPU, for scratch and results. Weft frees it after the call,
   * when the work on the stream is complete; it must not be given to {@code cuMemFree}. Its
   * contents are undefined. Blocks of shuffles are spilled if needed.
   *
   * @param bytes 0 or more; the address is a multiple of 64
   * @throws IllegalStateException if there is no room in time, or the call has ended
   */
  public CUdeviceptr take(long bytes) {
    requireRunning();
    if (bytes < 0) {
      throw new IllegalArgumentException(bytes + " bytes of memory of a GPU");
    }
    CudaMemory memory = work.take(bytes);
    taken.add(memory);
    work.lane().stream().device().use(); // An allocation may have made other calls of the driver.
    return JcudaPointers.pointer(memory.address());
  }

  /**
   * Returns a kernel of the program. A text is loaded once for each executor, and stays until the
   * executor ends.
   *
   * @param ptx the text of a module, for the GPU's compute capability or an older one
   * @param name of the kernel
   * @throws IllegalArgumentException if the text has no kernel of this name
   * @throws io.weft.device.cuda.CudaException if the driver refuses the text, with the reason
   * @throws IllegalStateException if the call has ended
   */
  public CUfunction kernel(String ptx, String name) {
    requireRunning();
    return JcudaPointers.function(work.kernels(ptx).function(name));
  }

  private void requireRunning() {
    if (ended) {
      throw new IllegalStateException(
          "a function on batches uses its JcudaWork after its end: each call has its own");
    }
  }

  /** Whether a range is in memory that was allocated here. */
  boolean hasTaken(long address, long bytes) {
    return taken.stream()
        .anyMatch(memory -> within(address, bytes, memory.address(), memory.bytes()));
  }

  static boolean within(long address, long bytes, long start, long length) {
    return address >= start && bytes <= length && address - start <= length - bytes;
  }

  /** Keeps the memory until the event has ended. */
  void usedUntil(Event event) {
    taken.forEach(memory -> memory.usedUntil(event));
  }

  /** Gives the memory back; nothing can be allocated afterwards. */
  void end() {
    ended = true;
    taken.forEach(CudaMemory::close);
  }
}
