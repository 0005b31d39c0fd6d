package io.weft.spark.config;

/** The route of a session's SQL shuffles. */
public enum Route {
  /** Columns if the input arrives in batches of columns, rows elsewhere. */
  AUTO,
  /** Always rows. No plan is changed. */
  ROWS,
  /** Columns wherever Weft supports all column types. */
  COLUMNS
}
