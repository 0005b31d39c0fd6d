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

  /** As {@link #write(CudaDevice, long, long, long)}, to any GPU. */
  public static void write(long to, byte[] from) {
    long here = Memory.allocate(from.length);
    try {
      Memory.copyFrom(from, Memory.BYTE_ARRAY, here, from.length);
      write(TestMachine.isReal() ? First.DEVICE : null, to, here, from.length);
    } finally {
      Memory.free(here);
    }
  }

  /** As {@link #read(CudaDevice, long, long, long)}, from any GPU. */
  public static void read(byte[] to, int first, long from, long bytes) {
    long here = Memory.allocate(bytes);
    try {
      read(TestMachine.isReal() ? First.DEVICE : null, here, from, bytes);
      Memory.copyTo(here, to, Memory.BYTE_ARRAY + first, bytes);
    } finally {
      Memory.free(here);
    }
  }

  /** Copies within the memory of GPUs. */
  public static void copy(long to, long from, long bytes) {
    if (TestMachine.isReal()) {
      run(First.DEVICE, stream -> stream.copyOnDevice(to, from, bytes));
    } else {
      Memory.copy(from, to, bytes);
    }
  }

  /** A real GPU for copies; the driver finds the owner of each address. */
  private static final class First {
    private static final CudaDevice DEVICE = TestMachine.open(0);
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
