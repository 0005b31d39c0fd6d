package io.weft.testgpus;

import io.weft.device.Deadline;
import io.weft.device.Lane.Priority;
import io.weft.device.cuda.CudaDevice;
import io.weft.device.cuda.CudaStream;
import io.weft.memory.Memory;
import java.time.Duration;
import java.util.function.Consumer;

/**
 * Accesses device memory in tests. Memory of the doubles is host memory and is accessed directly,
 * memory of a GPU by copies. Each call returns when the bytes are copied.
 */
public final class DeviceBytes {
  private static final Duration TIMEOUT = Duration.ofSeconds(60);

  private DeviceBytes() {}

  /** Copies from the host. */
  public static void write(CudaDevice device, long to, long from, long bytes) {
    if (TestMachine.isReal()) {
      run(device, stream -> stream.copyToDevice(to, from, bytes));
    } else {
      Memory.copy(from, to, bytes);
    }
  }

  /** Copies to the host. */
  public static void read(CudaDevice device, long to, long from, long bytes) {
    if (TestMachine.isReal()) {
      run(device, stream -> stream.copyToHost(to, from, bytes));
    } else {
      Memory.copy(from, to, bytes);
    }
  }

  /** Sets all bytes to one value. */
  public static void fill(CudaDevice device, long to, long bytes, byte value) {
    long here = Memory.allocate(bytes);
    try {
      Memory.setMemory(here, bytes, value);
      write(device, to, here, bytes);
    } finally {
      Memory.free(here);
    }
  }

  /** Reads one byte. */
  public static byte get(CudaDevice device, long from) {
    long here = Memory.allocate(1);
    try {
      read(device, here, from, 1);
      return Memory.getByte(here);
    } finally {
      Memory.free(here);
    }
  }

  private static void run(CudaDevice device, Consumer<CudaStream> copy) {
    try (CudaStream stream = CudaStream.open(device, "bytes of a test", Priority.NORMAL)) {
      copy.accept(stream);
      if (!stream.awaitIdle(Deadline.after(TIMEOUT))) {
        throw new AssertionError("a copy on " + device + " did not end within " + TIMEOUT);
      }
    }
  }
}
