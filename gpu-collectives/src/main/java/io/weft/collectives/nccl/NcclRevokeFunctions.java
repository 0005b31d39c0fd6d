package io.weft.collectives.nccl;

/** What NCCL has from {@link NcclLibrary#REVOKES} on; as {@link NcclFunctions}. */
final class NcclRevokeFunctions {
  private NcclRevokeFunctions() {}

  static native int ncclCommRevoke(long comm, int flags);
}
