package io.weft.collectives.nccl;

/** Functions that NCCL has since 2.27.3. {@link NcclLibrary#load} binds them if they exist. */
final class NcclWindowFunctions {
  private NcclWindowFunctions() {}

  static native int ncclCommWindowRegister(
      long comm, long address, long bytes, long out, int flags);

  static native int ncclCommWindowDeregister(long comm, long window);
}
