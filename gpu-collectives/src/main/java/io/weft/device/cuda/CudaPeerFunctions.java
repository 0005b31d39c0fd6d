package io.weft.device.cuda;

/**
 * Declares the functions of libcuda for GPUs that access each other's memory, as {@link
 * CudaFunctions}.
 */
final class CudaPeerFunctions {
  private CudaPeerFunctions() {}

  static native int cuDeviceCanAccessPeer(int[] can, int device, int peer);

  static native int cuDeviceGetAttribute(int[] value, int attribute, int device);

  static native int cuCtxEnablePeerAccess(long context, int flags);
}
