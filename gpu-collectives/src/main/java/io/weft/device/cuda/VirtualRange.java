package io.weft.device.cuda;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/** The steps of the driver's virtual memory management. Stateless. */
final class VirtualRange {
  private static final int ON_DEVICE = 1;
  private static final int READ_AND_WRITE = 3;
  private static final int ACCESS_BYTES = 12;

  private VirtualRange() {}

  /**
   * Reserves addresses.
   *
   * @param alignment a power of two, or 0 for the driver's default
   */
  static long reserve(long bytes, long alignment, String what) {
    long[] address = new long[1];
    CudaLibrary.check(
        CudaFunctions.cuMemAddressReserve(address, bytes, alignment, 0, 0), "reserving " + what);
    return address[0];
  }

  /** Frees unmapped addresses while another error is reported. */
  static void unreserve(long address, long bytes) {
    int unused = CudaFunctions.cuMemAddressFree(address, bytes);
  }

  /** Maps memory or a multicast object for one device; after a failure nothing is mapped. */
  static void map(CudaDevice device, long address, long bytes, long memory, String what) {
    CudaLibrary.check(CudaFunctions.cuMemMap(address, bytes, 0, memory, 0), "mapping " + what);
    int allowed = CudaFunctions.cuMemSetAccess(address, bytes, access(device), 1);
    if (allowed != CudaLibrary.SUCCESS) {
      int unused = CudaFunctions.cuMemUnmap(address, bytes);
      CudaLibrary.check(allowed, "opening " + what);
    }
  }

  /** Unmaps the memory and frees the addresses. */
  static void free(long address, long bytes, String what) {
    unmap(address, bytes, what);
    giveUp(address, bytes, what);
  }

  /** Unmaps the memory and keeps the addresses. */
  static void unmap(long address, long bytes, String what) {
    CudaLibrary.check(CudaFunctions.cuMemUnmap(address, bytes), "unmapping " + what);
  }

  /** Frees unmapped addresses. */
  static void giveUp(long address, long bytes, String what) {
    CudaLibrary.check(
        CudaFunctions.cuMemAddressFree(address, bytes), "freeing addresses of " + what);
  }

  /** The struct CUmemAccessDesc: location and flags. */
  static byte[] access(CudaDevice device) {
    return ByteBuffer.allocate(ACCESS_BYTES)
        .order(ByteOrder.nativeOrder())
        .putInt(ON_DEVICE)
        .putInt(device.device().ordinal())
        .putInt(READ_AND_WRITE)
        .array();
  }
}
