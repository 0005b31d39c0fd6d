package io.weft.tests.application;

import io.weft.device.Event;
import io.weft.device.cuda.CudaMemory;
import io.weft.shuffle.device.DeviceTable;
import io.weft.spark.gpu.DeviceWork;
import io.weft.spark.sql.WeftGpu;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/** Names a function on batches, {@code copied}, which copies them on the GPU. */
public final class SqlFunctions implements Runnable {
  @Override
  public void run() {
    StructType schema =
        new StructType().add("id", DataTypes.LongType, false).add("s", DataTypes.StringType, false);
    WeftGpu.register("copied", schema, SqlFunctions::copy);
  }

  private static DeviceTable copy(DeviceTable batch, DeviceWork work) {
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
