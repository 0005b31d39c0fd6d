package io.weft.spark.feed;

/** The treatment of rows that do not fill a batch, or a step of all ranks. */
public enum LastBatch {
  /**
   * Every batch is full. Rows that fill no batch are not fed, and the driver logs how many; these
   * are fewer than a batch per rank when rows are dealt evenly.
   */
  DROP,

  /**
   * Every row is fed. The last batches of a rank may have fewer rows, or none while other ranks
   * still have some: all ranks take the same number of steps.
   */
  KEEP
}
