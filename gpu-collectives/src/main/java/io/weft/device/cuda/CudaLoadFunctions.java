package io.weft.device.cuda;

/** Declares the function that loads a kernel, added in CUDA 12.4. As {@link CudaFunctions}. */
final class CudaLoadFunctions {
  private CudaLoadFunctions() {}

  static native int cuFuncLoad(long function);
}
