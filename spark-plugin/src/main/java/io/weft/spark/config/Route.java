package io.weft.spark.config;

/** The route of a session's SQL shuffles. */
public enum Route {
  /** The faster one: mostly columns if the input arrives in batches of columns, else rows. */
  AUTO,
  /** Always rows. */
  ROWS,
  /** Columns wherever Weft supports all column types. */
  COLUMNS
}
