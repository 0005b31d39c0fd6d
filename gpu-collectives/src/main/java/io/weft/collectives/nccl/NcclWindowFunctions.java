package io.weft.collectives.nccl;

/** What NCCL has since 2.27.3, bound by {@link NcclLibrary#load} where it is there. */
final class NcclWindowFunctions {
  private NcclWindowFunctions() {}

  static native int ncclCommWindowRegister(
      long comm, long address, long bytes, long out, int flags);

  static native int ncclCommWindowDeregister(long comm, long window);
}
