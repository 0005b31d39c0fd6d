package io.weft.training;

/** What becomes of the losses of a batch's rows. */
public enum LossReduction {
  /** One loss for each row. */
  NONE,
  /** Their sum. */
  SUM,
  /** Their sum divided by the number of rows whose label is not ignored. */
  MEAN
}
