package io.weft.spark.cudf;

import ai.rapids.cudf.Table;
import java.io.Serializable;

/** What a program does with a batch by cudf. Travels to the tasks. */
@FunctionalInterface
public interface CudfFunction extends Serializable {
  /**
   * Makes a table of a table. It need not wait for the device where it works as cudf does, on the
   * default stream of this thread; what it does on other streams or threads has ended when it
   * returns.
   *
   * @param batch read-only, and there until this returns; it may be closed, or left to the caller.
   *     Its columns may be part of the result, but nobody keeps them beyond it
   * @return a table with the columns that were declared, which is taken over and closed; 0 or more
   *     rows. It may be the batch itself. That decimals have no more digits than declared is for
   *     the function to see to: only their type and scale are looked at
   * @throws Exception which fails the task
   */
  Table apply(Table batch) throws Exception;
}
