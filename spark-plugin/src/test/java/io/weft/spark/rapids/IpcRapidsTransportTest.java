package io.weft.spark.rapids;

/** Data through GPU memory that both ends map. */
class IpcRapidsTransportTest extends RapidsTransportContract {
  @Override
  RapidsGpuPath way() {
    return RapidsGpuPath.IPC;
  }
}
