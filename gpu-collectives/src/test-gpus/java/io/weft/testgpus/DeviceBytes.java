package io.weft.testgpus;

import io.weft.device.Deadline;
import io.weft.device.Lane.Priority;
import io.weft.device.cuda.CudaDevice;
import io.weft.device.cuda.CudaStream;
import io.weft.memory.Memory;
import java.time.Duration;
import java.util.function.Consumer;

/**
 * What lies in memory of a device, for tests: memory of the doubles is the host's and is read and
 * written as it is, that of a GPU by copies. Each call ends when the bytes are there.
 */
public final class DeviceBytes {
  private static final Duration PATIENCE = Duration.ofSeconds(60);

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

  /** Makes all bytes one value. */
  public static void fill(CudaDevice device, long to, long bytes, byte value) {
    long here = Memory.allocate(bytes);
    try {
      Memory.setMemory(here, bytes, value);
      write(device, to, here, bytes);
    } finally {
      Memory.free(here);
    }
  }

  /** One of them. */
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
      if (!stream.awaitRest(Deadline.after(PATIENCE))) {
        throw new AssertionError("a copy on " + device + " did not end within " + PATIENCE);
      }
    }
  }
}
