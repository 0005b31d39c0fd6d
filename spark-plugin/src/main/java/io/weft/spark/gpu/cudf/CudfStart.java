package io.weft.spark.gpu.cudf;

import java.io.Serializable;

/**
 * Initialises cudf's memory, for example with {@code Rmm.initialize}, in an executor where it is
 * not initialised yet. It is serialized to the tasks, and runs on a thread whose current device is
 * the executor's GPU, one at a time.
 */
@FunctionalInterface
public interface CudfStart extends Serializable {
  /**
   * Initialises the memory.
   *
   * @throws Exception which fails the task; the next task tries again
   */
  void start() throws Exception;
}
