package io.weft.spark.rapids;

/** Data by NCCL. */
class NcclRapidsTransportTest extends RapidsTransportContract {
  @Override
  GpuWay way() {
    return GpuWay.NCCL;
  }
}
