package io.weft.spark.cudf;

import io.weft.spark.gpu.DeviceFunction;
import java.util.Objects;
import org.apache.spark.sql.types.StructType;

/**
 * Functions of cudf for {@code WeftGpu.mapBatches}. A batch is given as a table of cudf that lies
 * where the batch does; see docs/gpu.md for how types of Spark are those of cudf. Stateless.
 */
public final class CudfBatches {
  private CudfBatches() {}

  /**
   * A function on batches, in executors where cudf's memory is initialised by others, such as a
   * plugin of Spark.
   *
   * @param batch the columns of the rows that it is for
   * @throws IllegalArgumentException if a column has no type in cudf. Where cudf cannot work in an
   *     executor, its memory was not initialised, or it is on another GPU, the task fails with that
   *     reason
   */
  public static DeviceFunction function(StructType batch, CudfFunction function) {
    return function(
        batch,
        () -> {
          // Then the check that follows says what is missing.
        },
        function);
  }

  /**
   * As {@link #function(StructType, CudfFunction)}, where cudf's memory may have to be initialised.
   *
   * @param start runs in an executor before the first batch, unless its memory is initialised
   */
  public static DeviceFunction function(StructType batch, CudfStart start, CudfFunction function) {
    CudfTypes.requireTypes(batch);
    return new OnCudf(
        batch,
        Objects.requireNonNull(start, "there is nothing that initialises cudf"),
        Objects.requireNonNull(function, "there is no function for the batches"));
  }
}
