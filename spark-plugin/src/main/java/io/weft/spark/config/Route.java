package io.weft.spark.config;

/** Which way a session's SQL shuffles take where more than one can carry them. */
public enum Route {
  /** Columns where the plan below and above works in columns, rows elsewhere. */
  AUTO,
  /** Rows always: no plan is changed. */
  ROWS,
  /** Columns wherever the types can travel. */
  COLUMNS
}
