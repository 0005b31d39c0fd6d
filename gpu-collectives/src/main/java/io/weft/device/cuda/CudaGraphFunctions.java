package io.weft.device.cuda;

/** Declares the functions of libcuda for graphs, as {@link CudaFunctions}. */
final class CudaGraphFunctions {
  private CudaGraphFunctions() {}

  static native int cuStreamBeginCapture_v2(long stream, int mode);

  static native int cuStreamEndCapture(long stream, long[] graph);

  static native int cuGraphInstantiateWithFlags(long[] exec, long graph, long flags);

  static native int cuGraphDestroy(long graph);

  static native int cuGraphLaunch(long exec, long stream);

  static native int cuGraphExecDestroy(long exec);
}
