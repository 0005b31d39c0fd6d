package io.weft.spark.cudf;

import java.io.Serializable;

/**
 * Initialises cudf's memory, as with {@code Rmm.initialize}, in an executor where nobody has done
 * so. Travels to the tasks; runs on a thread whose current device is the executor's GPU, one at a
 * time.
 */
@FunctionalInterface
public interface CudfStart extends Serializable {
  /**
   * Initialises it.
   *
   * @throws Exception which fails the task; the next one tries again
   */
  void start() throws Exception;
}
