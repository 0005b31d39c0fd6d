package io.weft.spark.gpu.jcuda;

import io.weft.spark.gpu.DeviceFunction;
import io.weft.spark.gpu.TableTypes;
import io.weft.spark.gpu.jcuda.JcudaCall.JcudaDeviceFunction;
import java.util.Objects;
import org.apache.spark.sql.types.StructType;

/**
 * Runs functions that use JCuda in {@code WeftGpu.mapBatches}, such as kernels of a program. A
 * function gets the columns of a batch as pointers into the batch's own memory. Stateless.
 */
public final class JcudaBatches {
  private JcudaBatches() {}

  /**
   * Makes a function on batches. In an executor without JCuda or its native code, the task fails
   * with that reason.
   *
   * @param batch the columns of the function's input
   * @throws IllegalArgumentException if a column has no place in a table
   * @throws IllegalStateException if JCuda is not on the driver's class path
   */
  public static DeviceFunction function(StructType batch, JcudaFunction function) {
    Objects.requireNonNull(function, "the function on batches is null");
    TableTypes.obstacle(batch)
        .ifPresent(
            why -> {
              throw new IllegalArgumentException("batches cannot be on a GPU: " + why);
            });
    JcudaLibrary.requireClasses("the driver");
    return new JcudaDeviceFunction(batch, function);
  }
}
