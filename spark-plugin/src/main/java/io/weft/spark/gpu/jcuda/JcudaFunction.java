package io.weft.spark.gpu.jcuda;

import java.io.Serializable;

/** A program's function on batches, which enqueues work with JCuda. Serialized to the tasks. */
@FunctionalInterface
public interface JcudaFunction extends Serializable {
  /**
   * Makes a table from a table. It need not wait for the device: work on {@link JcudaWork#stream}
   * is ordered behind the work that makes the batch, and before the use of the result. Work on
   * other streams must be complete when it returns. The primary context of the executor's GPU is
   * current on the calling thread.
   *
   * @param batch read-only, and valid until this returns
   * @param work the stream, memory and kernels of this call
   * @return a table with the declared columns and 0 or more rows, which is copied. Its columns are
   *     of the batch, or in memory of {@link JcudaWork#take}. It may be the batch itself
   * @throws Exception which fails the task. JCuda throws one for a failed call only after {@code
   *     JCudaDriver.setExceptionsEnabled(true)}
   */
  JcudaTable apply(JcudaTable batch, JcudaWork work) throws Exception;
}
