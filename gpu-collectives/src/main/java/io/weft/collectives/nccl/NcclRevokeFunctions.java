package io.weft.collectives.nccl;

/**
 * Functions that NCCL has from {@link NcclLibrary#REVOKES} on; otherwise as {@link NcclFunctions}.
 */
final class NcclRevokeFunctions {
  private NcclRevokeFunctions() {}

  static native int ncclCommRevoke(long comm, int flags);
}
