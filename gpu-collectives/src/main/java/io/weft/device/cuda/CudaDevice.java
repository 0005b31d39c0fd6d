package io.weft.device.cuda;

import io.weft.device.Device;
import io.weft.device.cuda.CudaLibrary.GpuDescription;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * A GPU in use. It holds the primary context, which cudf and NCCL use too, until it is closed.
 * Thread-safe.
 */
public final class CudaDevice implements AutoCloseable {
  private static final int MEMORY_TYPE = 2;
  private static final int ORDINAL = 9;
  private static final int HOST_MEMORY = 1;
  private static final int DEVICE_MEMORY = 2;

  private final GpuDescription description;
  private final int handle;
  private final long context;
  private final AtomicBoolean closed = new AtomicBoolean();

  private CudaDevice(GpuDescription description, int handle, long context) {
    this.description = description;
    this.handle = handle;
    this.context = context;
  }

  static CudaDevice open(GpuDescription description, int handle) {
    long[] context = new long[1];
    CudaLibrary.check(
        CudaFunctions.cuDevicePrimaryCtxRetain(context, handle),
        "cuDevicePrimaryCtxRetain of " + description);
    return new CudaDevice(description, handle, context[0]);
  }

  public GpuDescription description() {
    return description;
  }

  public Device device() {
    return new Device(Device.Kind.CUDA, description.ordinal());
  }

  /** Makes this GPU the current device of this thread. */
  public void use() {
    if (closed.get()) {
      throw new IllegalStateException(this + " was closed");
    }
    CudaLibrary.check(CudaFunctions.cuCtxSetCurrent(context), "cuCtxSetCurrent of " + this);
  }

  /** Free bytes of the device's memory. */
  long freeBytes() {
    use();
    long[] free = new long[1];
    CudaLibrary.check(CudaFunctions.cuMemGetInfo_v2(free, new long[1]), "cuMemGetInfo of " + this);
    return free[0];
  }

  /** Whether the address is memory of a GPU; host memory, pinned or not, is not. */
  public boolean isDeviceMemory(long address) {
    return memoryType(address) == DEVICE_MEMORY;
  }

  /** Whether the address is host memory that devices can copy by themselves. */
  public boolean isPinnedMemory(long address) {
    return memoryType(address) == HOST_MEMORY;
  }

  /**
   * The reason why a range is not memory of this GPU; empty if it is.
   *
   * @param bytes 1 or more
   */
  public Optional<String> whyNotHere(long address, long bytes) {
    for (long at : new long[] {address, address + bytes - 1}) {
      if (memoryType(at) != DEVICE_MEMORY) {
        return Optional.of("it is memory of the host, not of " + this);
      }
      int ordinal = attribute(ORDINAL, at);
      if (ordinal != description.ordinal()) {
        return Optional.of("it is memory of cuda:" + ordinal + ", not of " + this);
      }
    }
    return Optional.empty();
  }

  /** Returns 0 for memory that the driver does not know. */
  private int memoryType(long address) {
    return attribute(MEMORY_TYPE, address);
  }

  private int attribute(int attribute, long address) {
    use();
    int[] value = new int[1];
    return CudaFunctions.cuPointerGetAttribute(value, attribute, address) == CudaLibrary.SUCCESS
        ? value[0]
        : 0;
  }

  /** Releases the context; everything created on this device must be closed before. */
  @Override
  public void close() {
    if (closed.compareAndSet(false, true)) {
      CudaLibrary.check(
          CudaFunctions.cuDevicePrimaryCtxRelease_v2(handle),
          "cuDevicePrimaryCtxRelease of " + this);
    }
  }

  /** A text such as "cuda:0 (NVIDIA H100 80GB HBM3)". */
  @Override
  public String toString() {
    return device() + " (" + description.name() + ")";
  }
}
