package io.weft.training;

/** How the losses of a batch's rows are combined. */
public enum LossReduction {
  /** One loss for each row. */
  NONE,
  /** The sum of the losses. */
  SUM,
  /** The sum divided by the number of rows whose label is not ignored. */
  MEAN
}
