package io.weft.spark.sql;

import io.weft.device.Event;
import io.weft.device.cuda.CudaMemory;
import io.weft.shuffle.device.DeviceTable;
import io.weft.spark.gpu.DeviceWork;

/** Functions of tests on batches on a GPU. */
public final class DeviceFunctions {
  private DeviceFunctions() {}

  /** Copies the rows to other memory of the GPU. */
  public static DeviceTable copy(DeviceTable batch, DeviceWork work) {
    CudaMemory memory = work.take(batch.bytes());
    long from = batch.address();
    long to = memory.address();
    Event copied =
        work.lane()
            .submit(
                "a copy of " + batch,
                () -> work.lane().stream().copyOnDevice(to, from, batch.bytes()),
                batch.ready());
    return DeviceTable.of(memory, batch.layout(), copied);
  }
}
