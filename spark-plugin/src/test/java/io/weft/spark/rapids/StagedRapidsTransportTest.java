package io.weft.spark.rapids;

/** Data through pinned host memory. */
class StagedRapidsTransportTest extends RapidsTransportContract {
  @Override
  RapidsGpuPath way() {
    return RapidsGpuPath.STAGED;
  }
}
