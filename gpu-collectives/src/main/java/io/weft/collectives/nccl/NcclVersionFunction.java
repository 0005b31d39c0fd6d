package io.weft.collectives.nccl;

/** The function that every NCCL has, bound first to ask how old the library is. */
final class NcclVersionFunction {
  private NcclVersionFunction() {}

  static native int ncclGetVersion(int[] version);
}
