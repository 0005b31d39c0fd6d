package io.weft.spark.feed;

/** What becomes of rows that do not fill a batch, or a step, of all ranks. */
public enum LastBatch {
  /**
   * Every batch is full. Rows that are left over, fewer than a batch per rank when rows are dealt
   * evenly, are not fed; the driver logs how many.
   */
  DROP,

  /**
   * Every row is fed. The last batches of a rank may have fewer rows, down to none where other
   * ranks still have some: all ranks take the same number of steps.
   */
  KEEP
}
