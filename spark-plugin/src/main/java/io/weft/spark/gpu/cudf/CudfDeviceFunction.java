package io.weft.spark.gpu.cudf;

import io.weft.shuffle.device.DeviceTable;
import io.weft.spark.gpu.DeviceFunction;
import io.weft.spark.gpu.DeviceWork;
import java.io.IOException;
import java.io.ObjectInputStream;
import org.apache.spark.sql.types.StructType;

/**
 * Adapts a cudf function to a function on batches. No cudf type occurs in its methods' signatures,
 * so executors without cudf can load it and report what is missing. Immutable; each call is for one
 * thread.
 */
final class CudfDeviceFunction implements DeviceFunction {
  private static final long serialVersionUID = 1;

  private final StructType schema;
  private final CudfStart start;
  private final CudfFunction function;

  CudfDeviceFunction(StructType schema, CudfStart start, CudfFunction function) {
    this.schema = schema;
    this.start = start;
    this.function = function;
  }

  @Override
  public DeviceTable apply(DeviceTable batch, DeviceWork work) throws Exception {
    try {
      return new CudfCall(schema, function).of(batch, start, work);
    } catch (NoClassDefFoundError e) {
      throw explained(e);
    }
  }

  /** The program's function has a cudf table in its signature. */
  private void readObject(ObjectInputStream in) throws IOException, ClassNotFoundException {
    try {
      in.defaultReadObject();
    } catch (NoClassDefFoundError e) {
      throw explained(e);
    }
  }

  private static RuntimeException explained(NoClassDefFoundError e) {
    if (e.getMessage() == null || !e.getMessage().contains("ai/rapids/cudf/")) {
      throw e;
    }
    return new IllegalStateException(
        "cudf is not on the class path of this executor, and a function on batches needs it: add"
            + " ai.rapids:cudf with the classifier of this machine's CUDA, such as cuda13",
        e);
  }
}
