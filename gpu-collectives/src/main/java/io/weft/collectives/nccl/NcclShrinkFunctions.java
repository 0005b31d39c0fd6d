package io.weft.collectives.nccl;

/**
 * Functions that NCCL has from {@link NcclLibrary#SHRINKS} on; otherwise as {@link NcclFunctions}.
 */
final class NcclShrinkFunctions {
  private NcclShrinkFunctions() {}

  static native int ncclCommShrink(
      long comm, long excluded, int count, long out, long config, int flags);
}
