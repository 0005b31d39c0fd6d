package io.weft.collectives.nccl;

/** The function that every NCCL has. It is bound first, to read the version of the library. */
final class NcclVersionFunction {
  private NcclVersionFunction() {}

  static native int ncclGetVersion(int[] version);
}
