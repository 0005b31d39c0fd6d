package io.weft.device.cuda;

/**
 * Declares the functions of libcuda for multicast, added in CUDA 12.1, and for memory handles
 * between processes. As {@link CudaFunctions}, but older drivers lack them.
 */
final class CudaMulticastFunctions {
  private CudaMulticastFunctions() {}

  static native int cuMulticastCreate(long[] object, byte[] properties);

  static native int cuMulticastAddDevice(long object, int device);

  static native int cuMulticastBindAddr(
      long object, long offset, long address, long bytes, long flags);

  static native int cuMulticastUnbind(long object, int device, long offset, long bytes);

  static native int cuMulticastGetGranularity(long[] bytes, byte[] properties, int option);

  static native int cuMemExportToShareableHandle(
      int[] descriptor, long memory, int type, long flags);

  static native int cuMemImportFromShareableHandle(long[] memory, long descriptor, int type);
}
