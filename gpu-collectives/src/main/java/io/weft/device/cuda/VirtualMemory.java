package io.weft.device.cuda;

import io.weft.memory.Bytes;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * Device memory of the driver's virtual memory management: addresses are reserved, then memory is
 * mapped there. NCCL windows need it, and a {@link MulticastObject} needs {@link #forMulticast}. An
 * {@link IpcExport} cannot export it. Immutable and thread-safe.
 */
public final class VirtualMemory implements CudaMemorySource {
  private static final int PINNED = 1;
  private static final int ON_DEVICE = 1;
  private static final int PROPERTY_BYTES = 32;

  private final CudaDevice device;
  private final long granularity;
  private final boolean forMulticast;

  private VirtualMemory(CudaDevice device, long granularity, boolean forMulticast) {
    this.device = device;
    this.granularity = granularity;
    this.forMulticast = forMulticast;
  }

  /** Virtual memory of a device. */
  public static VirtualMemory of(CudaDevice device) {
    return new VirtualMemory(device, granularity(device, false), false);
  }

  /**
   * Virtual memory of a device, with the handle type and the segments for a multicast window.
   *
   * @throws IllegalArgumentException with the reason if the device has no multicast
   */
  public static VirtualMemory forMulticast(CudaDevice device) {
    MulticastSupport.require(device);
    long least = granularity(device, true);
    long ofMulticast = MulticastObject.granularity(MulticastObject.PAIR, least);
    return new VirtualMemory(device, Math.max(least, ofMulticast), true);
  }

  private static long granularity(CudaDevice device, boolean forMulticast) {
    device.use();
    long[] granularity = new long[1];
    CudaLibrary.check(
        CudaFunctions.cuMemGetAllocationGranularity(
            granularity, properties(device, forMulticast), 0),
        "cuMemGetAllocationGranularity of " + device);
    return granularity[0];
  }

  /**
   * The struct CUmemAllocationProp: type, handle types, location, nothing for Windows, no flags.
   */
  private static byte[] properties(CudaDevice device, boolean forMulticast) {
    return ByteBuffer.allocate(PROPERTY_BYTES)
        .order(ByteOrder.nativeOrder())
        .putInt(PINNED)
        .putInt(forMulticast ? MulticastObject.DESCRIPTORS : 0)
        .putInt(ON_DEVICE)
        .putInt(device.device().ordinal())
        .array();
  }

  @Override
  public String what() {
    return forMulticast ? "virtual device memory for multicast" : "virtual device memory";
  }

  @Override
  public long granularity() {
    return granularity;
  }

  /** Whether it can be bound to a {@link MulticastObject}. */
  boolean isForMulticast() {
    return forMulticast;
  }

  @Override
  public long allocate(CudaDevice owner, long bytes) {
    requireSame(owner);
    device.use();
    String what = Bytes.text(bytes) + " of " + what() + " of " + device;
    long address = VirtualRange.reserve(bytes, forMulticast ? granularity : 0, what);
    long[] memory = new long[1];
    int created = CudaFunctions.cuMemCreate(memory, bytes, properties(device, forMulticast), 0);
    if (created != CudaLibrary.SUCCESS) {
      VirtualRange.unreserve(address, bytes);
      CudaLibrary.check(created, "allocating " + what);
    }
    try {
      VirtualRange.map(device, address, bytes, memory[0], what);
    } catch (CudaException e) {
      VirtualRange.unreserve(address, bytes);
      throw e;
    } finally {
      // The mapping keeps the memory.
      int unused = CudaFunctions.cuMemRelease(memory[0]);
    }
    return address;
  }

  private void requireSame(CudaDevice owner) {
    if (!owner.device().equals(device.device())) {
      throw new IllegalArgumentException(what() + " of " + device + " in a pool of " + owner);
    }
  }

  @Override
  public void free(CudaDevice owner, long address, long bytes) {
    device.use();
    VirtualRange.free(address, bytes, what());
  }
}
