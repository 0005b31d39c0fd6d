package io.weft.device.cuda;

/**
 * Declares the functions of libcuda that Weft calls, under their names in the library. Pointers and
 * sizes are longs; results are arrays of one element. Bound by {@link CudaLibrary#load}.
 */
final class CudaFunctions {
  private CudaFunctions() {}

  static native int cuInit(int flags);

  static native int cuDriverGetVersion(int[] version);

  static native int cuGetErrorName(int code, long[] name);

  static native int cuDeviceGetCount(int[] count);

  static native int cuDeviceGet(int[] device, int ordinal);

  static native int cuDeviceGetName(byte[] name, int size, int device);

  static native int cuDeviceGetUuid_v2(byte[] uuid, int device);

  static native int cuDeviceTotalMem_v2(long[] bytes, int device);

  static native int cuDevicePrimaryCtxRetain(long[] context, int device);

  static native int cuDevicePrimaryCtxRelease_v2(int device);

  static native int cuCtxSetCurrent(long context);

  static native int cuCtxGetStreamPriorityRange(int[] least, int[] greatest);

  static native int cuStreamCreateWithPriority(long[] stream, int flags, int priority);

  static native int cuStreamDestroy_v2(long stream);

  static native int cuStreamQuery(long stream);

  static native int cuStreamWaitEvent(long stream, long event, int flags);

  static native int cuEventCreate(long[] event, int flags);

  static native int cuEventDestroy_v2(long event);

  static native int cuEventRecord(long event, long stream);

  static native int cuEventQuery(long event);

  static native int cuMemAlloc_v2(long[] address, long bytes);

  static native int cuMemFree_v2(long address);

  static native int cuMemHostAlloc(long[] address, long bytes, int flags);

  static native int cuMemFreeHost(long address);

  static native int cuMemGetInfo_v2(long[] free, long[] total);

  static native int cuMemcpyHtoDAsync_v2(long to, long from, long bytes, long stream);

  static native int cuMemcpyDtoHAsync_v2(long to, long from, long bytes, long stream);

  static native int cuMemcpyDtoDAsync_v2(long to, long from, long bytes, long stream);

  static native int cuMemsetD8Async(long to, byte value, long bytes, long stream);

  static native int cuMemGetAddressRange_v2(long[] base, long[] bytes, long address);

  static native int cuIpcGetMemHandle(byte[] handle, long address);

  static native int cuIpcOpenMemHandle_v2(long[] address, IpcMemoryHandle handle, int flags);

  static native int cuIpcCloseMemHandle(long address);

  static native int cuPointerGetAttribute(int[] value, int attribute, long address);

  static native int cuModuleLoadDataEx(
      long[] module, byte[] image, int count, int[] options, long[] values);

  static native int cuModuleGetFunction(long[] function, long module, byte[] name);

  static native int cuModuleUnload(long module);

  static native int cuLaunchKernel(
      long function,
      int blocksX,
      int blocksY,
      int blocksZ,
      int threadsX,
      int threadsY,
      int threadsZ,
      int sharedBytes,
      long stream,
      long parameters,
      long[] extra);
}
