package io.weft.spark.gpu.cudf;

import ai.rapids.cudf.Table;
import java.io.Serializable;

/** A program's function on batches as cudf tables. It is serialized to the tasks. */
@FunctionalInterface
public interface CudfFunction extends Serializable {
  /**
   * Makes a table from a table. Like cudf itself, it need not wait for work on this thread's
   * default stream. Work on other streams or threads must be complete when it returns.
   *
   * @param batch read-only, and valid until this returns. The function may close it or leave that
   *     to the caller. Its columns may be part of the result, but must not be kept beyond it
   * @return a table with the declared columns and 0 or more rows; the caller closes it. It may be
   *     the batch itself. The function must ensure that decimals have no more digits than declared:
   *     only their type and scale are verified
   * @throws Exception which fails the task
   */
  Table apply(Table batch) throws Exception;
}
