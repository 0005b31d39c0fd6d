package io.weft.spark.cudf;

import ai.rapids.cudf.Table;
import io.weft.device.cuda.CudaLane;
import io.weft.device.cuda.CudaStream;
import io.weft.spark.gpu.DeviceFunction;
import io.weft.spark.gpu.DeviceWork;
import io.weft.table.DeviceTable;
import org.apache.spark.sql.types.StructType;

/** A function of cudf as one on batches. Immutable; each call is for one thread. */
final class OnCudf implements DeviceFunction {
  private static final long serialVersionUID = 1;

  private final StructType schema;
  private final CudfStart start;
  private final CudfFunction function;

  OnCudf(StructType schema, CudfStart start, CudfFunction function) {
    this.schema = schema;
    this.start = start;
    this.function = function;
  }

  @Override
  public DeviceTable apply(DeviceTable batch, DeviceWork work) throws Exception {
    CudaStream stream = CudfHere.stream(work.lane().stream().device(), start, work.deadline());
    CudaLane.order(batch.ready(), stream, work.deadline());
    try {
      return applied(batch, work, stream);
    } catch (Throwable e) {
      keep(batch, work, stream, e);
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

  /** What failed may have enqueued work that reads the batch. */
  private static void keep(DeviceTable batch, DeviceWork work, CudaStream stream, Throwable cause) {
    try {
      batch.usedUntil(work.lane().after("what cudf began with a batch", stream));
    } catch (RuntimeException e) {
      cause.addSuppressed(e);
    }
  }
}
