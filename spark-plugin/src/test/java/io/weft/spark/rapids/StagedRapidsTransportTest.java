package io.weft.spark.rapids;

/** Data through pinned memory of the hosts. */
class StagedRapidsTransportTest extends RapidsTransportContract {
  @Override
  GpuWay way() {
    return GpuWay.STAGED;
  }
}
