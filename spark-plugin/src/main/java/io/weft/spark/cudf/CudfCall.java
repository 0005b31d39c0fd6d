package io.weft.spark.cudf;

import ai.rapids.cudf.Table;
import io.weft.device.cuda.CudaStream;
import io.weft.spark.gpu.DeviceWork;
import io.weft.table.DeviceTable;
import org.apache.spark.sql.types.StructType;

/**
 * One call of a cudf function.
 *
 * @param schema of the batch
 */
record CudfCall(StructType schema, CudfFunction function) {
  /**
   * Makes a Weft table from a batch.
   *
   * @param start runs if cudf's memory was not initialised
   * @throws Exception which fails the task
   */
  DeviceTable of(DeviceTable batch, CudfStart start, DeviceWork work) throws Exception {
    CudaStream stream = CudfHere.stream(work.lane().stream().device(), start, work.deadline());
    // cudf counts nulls of the batch, and this thread waits for that without a deadline.
    batch.ready().await(work.deadline());
    try {
      return applied(batch, work, stream);
    } catch (Throwable e) {
      // A failed call may have enqueued work that reads the batch.
      CudfUse.end("cudf work on a batch", work, stream, batch::usedUntil, e);
      throw e;
    }
  }

  private DeviceTable applied(DeviceTable batch, DeviceWork work, CudaStream stream)
      throws Exception {
    DeviceTable packed = null;
    try {
      try (CudfView view = CudfView.of(batch, schema);
          Table made = made(view.table())) {
        packed = CudfPacking.of(made, work, stream).pack();
      }
      return packed;
    } catch (Throwable e) {
      if (packed != null) {
        packed.close();
      }
      throw e;
    }
  }

  private Table made(Table batch) throws Exception {
    Table made = function.apply(batch);
    if (made == null) {
      throw new IllegalStateException("a function on batches of cudf returned no table");
    }
    return made;
  }
}
