package io.weft.device.cuda;

import io.weft.device.cuda.CudaMemoryPool.Kind;
import io.weft.memory.Bytes;

/** Allocates memory with the driver's plain functions. Stateless. */
final class DriverMemory {
  private static final int PORTABLE = 1;

  private DriverMemory() {}

  static long allocate(CudaDevice device, long bytes, Kind kind) {
    device.use();
    long[] address = new long[1];
    CudaLibrary.check(
        kind == Kind.DEVICE
            ? CudaFunctions.cuMemAlloc_v2(address, bytes)
            : CudaFunctions.cuMemHostAlloc(address, bytes, PORTABLE),
        "allocating " + Bytes.text(bytes) + " of " + kind.what() + " of " + device);
    return address[0];
  }

  static void free(CudaDevice device, long address, Kind kind) {
    device.use();
    CudaLibrary.check(
        kind == Kind.DEVICE
            ? CudaFunctions.cuMemFree_v2(address)
            : CudaFunctions.cuMemFreeHost(address),
        "freeing " + kind.what() + " of " + device);
  }
}
