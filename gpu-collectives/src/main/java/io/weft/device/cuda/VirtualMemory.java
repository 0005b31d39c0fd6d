package io.weft.device.cuda;

import io.weft.memory.Bytes;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * Device memory of the driver's virtual memory management: addresses are reserved, then memory is
 * mapped there. NCCL windows need it, and a {@link MulticastObject} needs {@link #forMulticast}. An
 * {@link IpcExport} cannot export it. Immutable and thread-safe.
 *
 * <p>Memory gets the handle types that NCCL exports: file descriptors, and fabric handles where the
 * driver permits them. The driver exports no type that was not requested at the allocation.
 */
public final class VirtualMemory implements CudaMemorySource {
  private static final int PINNED = 1;
  private static final int ON_DEVICE = 1;
  private static final int PROPERTY_BYTES = 32;
  private static final int FABRIC = 8;

  /** The place of the flag gpuDirectRDMACapable in CUmemAllocationProp. */
  private static final int RDMA_OFFSET = 25;

  private static final int RDMA_SUPPORTED = 110;
  private static final int FABRIC_SUPPORTED = 128;
  private static final int NOT_PERMITTED = 800;
  private static final int NOT_SUPPORTED = 801;

  private final CudaDevice device;
  private final long granularity;
  private final boolean forMulticast;
  private final int handleTypes;
  private final boolean forRdma;

  private VirtualMemory(CudaDevice device, boolean forMulticast) {
    this.device = device;
    this.forMulticast = forMulticast;
    this.handleTypes = forMulticast ? MulticastObject.DESCRIPTORS : handleTypes(device);
    this.forRdma = !forMulticast && has(device, RDMA_SUPPORTED);
    long least = leastGranularity();
    this.granularity =
        forMulticast
            ? Math.max(least, MulticastObject.granularity(MulticastObject.PAIR, least))
            : least;
  }

  /** Virtual memory of a device. */
  public static VirtualMemory of(CudaDevice device) {
    return new VirtualMemory(device, false);
  }

  private static int handleTypes(CudaDevice device) {
    int descriptors = has(device, MulticastSupport.DESCRIPTORS) ? MulticastObject.DESCRIPTORS : 0;
    return has(device, FABRIC_SUPPORTED) ? descriptors | FABRIC : descriptors;
  }

  private static boolean has(CudaDevice device, int attribute) {
    return CudaLibrary.attribute(CudaLibrary.handle(device.description().ordinal()), attribute)
        != 0;
  }

  /**
   * Virtual memory of a device, with the handle type and the segments for a multicast window.
   *
   * @throws IllegalArgumentException with the reason if the device has no multicast
   */
  public static VirtualMemory forMulticast(CudaDevice device) {
    MulticastSupport.require(device);
    return new VirtualMemory(device, true);
  }

  private long leastGranularity() {
    device.use();
    long[] least = new long[1];
    CudaLibrary.check(
        CudaFunctions.cuMemGetAllocationGranularity(least, properties(handleTypes), 0),
        "cuMemGetAllocationGranularity of " + device);
    return least[0];
  }

  /**
   * The struct CUmemAllocationProp: type, handle types, location, nothing for Windows, and the flag
   * for network cards.
   */
  byte[] properties(int types) {
    return ByteBuffer.allocate(PROPERTY_BYTES)
        .order(ByteOrder.nativeOrder())
        .putInt(PINNED)
        .putInt(types)
        .putInt(ON_DEVICE)
        .putInt(device.device().ordinal())
        .put(RDMA_OFFSET, (byte) (forRdma ? 1 : 0))
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

  /** Whether the driver can export it to other processes of the host. */
  public boolean isExportable() {
    return (handleTypes & MulticastObject.DESCRIPTORS) != 0;
  }

  @Override
  public long allocate(CudaDevice owner, long bytes) {
    requireSame(owner);
    device.use();
    String what = Bytes.text(bytes) + " of " + what() + " of " + device;
    long address = VirtualRange.reserve(bytes, forMulticast ? granularity : 0, what);
    long[] memory = new long[1];
    int created = create(memory, bytes);
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

  /** The driver refuses fabric handles where the fabric is not set up, although it offers them. */
  private int create(long[] memory, long bytes) {
    int created = CudaFunctions.cuMemCreate(memory, bytes, properties(handleTypes), 0);
    boolean isRefused = created == NOT_PERMITTED || created == NOT_SUPPORTED;
    return isRefused && (handleTypes & FABRIC) != 0
        ? CudaFunctions.cuMemCreate(memory, bytes, properties(handleTypes & ~FABRIC), 0)
        : created;
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
