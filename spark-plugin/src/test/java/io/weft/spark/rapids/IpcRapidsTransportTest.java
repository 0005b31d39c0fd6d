package io.weft.spark.rapids;

/** Data through GPU memory that both ends map. */
class IpcRapidsTransportTest extends RapidsTransportContract {
  @Override
  GpuWay way() {
    return GpuWay.IPC;
  }
}
