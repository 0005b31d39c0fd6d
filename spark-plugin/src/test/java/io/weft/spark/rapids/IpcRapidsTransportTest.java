package io.weft.spark.rapids;

/** Data through memory of GPUs that both ends map. */
class IpcRapidsTransportTest extends RapidsTransportContract {
  @Override
  GpuWay way() {
    return GpuWay.IPC;
  }
}
