package io.weft.spark.gpu.cudf;

import io.weft.spark.gpu.DeviceFunction;
import io.weft.spark.gpu.cudf.CudfCall.CudfDeviceFunction;
import java.util.Objects;
import org.apache.spark.sql.types.StructType;

/**
 * Runs functions of cudf in {@code WeftGpu.mapBatches}. A function gets the batch as a cudf table
 * in the batch's own memory; docs/gpu.md says how Spark types map to cudf types. Stateless.
 */
public final class CudfBatches {
  private CudfBatches() {}

  /**
   * Makes a function on batches, for executors where others, such as a Spark plugin, initialise
   * cudf's memory.
   *
   * @param batch the columns of the function's input
   * @throws IllegalArgumentException if a column has no type in cudf. If cudf cannot work in an
   *     executor, its memory was not initialised, or it is on another GPU, the task fails with that
   *     reason
   */
  public static DeviceFunction function(StructType batch, CudfFunction function) {
    return function(
        batch,
        () -> {
          // The check that follows reports the missing memory.
        },
        function);
  }

  /**
   * Like {@link #function(StructType, CudfFunction)}, for executors where cudf's memory may have to
   * be initialised.
   *
   * @param start runs in an executor before the first batch, unless its memory is initialised
   */
  public static DeviceFunction function(StructType batch, CudfStart start, CudfFunction function) {
    CudfTypes.requireTypes(batch);
    return new CudfDeviceFunction(
        batch,
        Objects.requireNonNull(start, "the function that initialises cudf is null"),
        Objects.requireNonNull(function, "the function on batches is null"));
  }
}
