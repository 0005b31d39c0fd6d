package io.weft.spark.rapids;

/** Data by NCCL. */
class NcclRapidsTransportTest extends RapidsTransportContract {
  @Override
  RapidsGpuPath way() {
    return RapidsGpuPath.NCCL;
  }
}
