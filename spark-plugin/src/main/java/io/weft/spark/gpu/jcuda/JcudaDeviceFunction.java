package io.weft.spark.gpu.jcuda;

import io.weft.shuffle.device.DeviceTable;
import io.weft.spark.gpu.DeviceFunction;
import io.weft.spark.gpu.DeviceWork;
import java.io.IOException;
import java.io.ObjectInputStream;
import org.apache.spark.sql.types.StructType;

/**
 * Adapts a function with JCuda to a function on batches. No type of JCuda occurs in its methods'
 * signatures, so executors without JCuda can load it and report what is missing. Immutable; each
 * call is for one thread.
 */
final class JcudaDeviceFunction implements DeviceFunction {
  private static final long serialVersionUID = 1;

  private final StructType schema;
  private final JcudaFunction function;

  JcudaDeviceFunction(StructType schema, JcudaFunction function) {
    this.schema = schema;
    this.function = function;
  }

  @Override
  public DeviceTable apply(DeviceTable batch, DeviceWork work) throws Exception {
    return new JcudaCall(schema, function).of(batch, work);
  }

  /** For plans. */
  @Override
  public String toString() {
    return "JCuda " + function;
  }

  /** The class of the program's function may have types of JCuda in signatures. */
  private void readObject(ObjectInputStream in) throws IOException, ClassNotFoundException {
    JcudaLibrary.requireClasses("this executor");
    in.defaultReadObject();
  }
}
