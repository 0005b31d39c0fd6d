package io.weft.device.cuda;

/**
 * The functions of libcuda for multicast, which came with CUDA 12.1, and for handles of memory that
 * go between processes; as {@link CudaFunctions}, but not there with every driver.
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
