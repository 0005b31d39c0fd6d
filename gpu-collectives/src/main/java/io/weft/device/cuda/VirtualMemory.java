package io.weft.device.cuda;

import io.weft.memory.Bytes;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * Device memory by the driver's virtual memory management: addresses are reserved, then memory is
 * mapped there. NCCL takes it for windows; other processes cannot import it by an {@link
 * IpcExport}. Immutable and thread-safe.
 */
public final class VirtualMemory implements CudaMemorySource {
  private static final int PINNED = 1;
  private static final int ON_DEVICE = 1;
  private static final int READ_AND_WRITE = 3;
  private static final int PROPERTY_BYTES = 32;
  private static final int ACCESS_BYTES = 12;

  private final CudaDevice device;
  private final long granularity;

  private VirtualMemory(CudaDevice device, long granularity) {
    this.device = device;
    this.granularity = granularity;
  }

  /** Of this device. */
  public static VirtualMemory of(CudaDevice device) {
    device.use();
    long[] granularity = new long[1];
    CudaLibrary.check(
        CudaFunctions.cuMemGetAllocationGranularity(granularity, properties(device), 0),
        "cuMemGetAllocationGranularity of " + device);
    return new VirtualMemory(device, granularity[0]);
  }

  /** CUmemAllocationProp: type, handle types, location, nothing for Windows, no flags. */
  private static byte[] properties(CudaDevice device) {
    return ByteBuffer.allocate(PROPERTY_BYTES)
        .order(ByteOrder.nativeOrder())
        .putInt(PINNED)
        .putInt(0)
        .putInt(ON_DEVICE)
        .putInt(device.device().ordinal())
        .array();
  }

  /** CUmemAccessDesc: location and flags. */
  private static byte[] access(CudaDevice device) {
    return ByteBuffer.allocate(ACCESS_BYTES)
        .order(ByteOrder.nativeOrder())
        .putInt(ON_DEVICE)
        .putInt(device.device().ordinal())
        .putInt(READ_AND_WRITE)
        .array();
  }

  @Override
  public String what() {
    return "virtual device memory";
  }

  @Override
  public long granularity() {
    return granularity;
  }

  @Override
  public long allocate(CudaDevice owner, long bytes) {
    requireSame(owner);
    device.use();
    String what = Bytes.text(bytes) + " of " + what() + " of " + device;
    long[] address = new long[1];
    CudaLibrary.check(
        CudaFunctions.cuMemAddressReserve(address, bytes, 0, 0, 0), "reserving " + what);
    long[] memory = new long[1];
    int created = CudaFunctions.cuMemCreate(memory, bytes, properties(device), 0);
    if (created != CudaLibrary.SUCCESS) {
      unreserve(address[0], bytes);
      CudaLibrary.check(created, "allocating " + what);
    }
    int mapped = CudaFunctions.cuMemMap(address[0], bytes, 0, memory[0], 0);
    int released = CudaFunctions.cuMemRelease(memory[0]); // The mapping keeps it.
    if (mapped != CudaLibrary.SUCCESS) {
      unreserve(address[0], bytes);
      CudaLibrary.check(mapped, "mapping " + what);
    }
    int allowed = CudaFunctions.cuMemSetAccess(address[0], bytes, access(device), 1);
    if (allowed != CudaLibrary.SUCCESS || released != CudaLibrary.SUCCESS) {
      free(owner, address[0], bytes);
      CudaLibrary.check(allowed != CudaLibrary.SUCCESS ? allowed : released, "opening " + what);
    }
    return address[0];
  }

  private static void unreserve(long address, long bytes) {
    int unused = CudaFunctions.cuMemAddressFree(address, bytes);
  }

  private void requireSame(CudaDevice owner) {
    if (!owner.device().equals(device.device())) {
      throw new IllegalArgumentException(what() + " of " + device + " in a pool of " + owner);
    }
  }

  @Override
  public void free(CudaDevice owner, long address, long bytes) {
    device.use();
    CudaLibrary.check(CudaFunctions.cuMemUnmap(address, bytes), "unmapping " + what());
    CudaLibrary.check(CudaFunctions.cuMemAddressFree(address, bytes), "giving up addresses");
  }
}
