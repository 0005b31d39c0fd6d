package io.weft.spark.sql;

/**
 * The route of one exchange and why.
 *
 * @param columns whether the exchange becomes a {@link WeftShuffleExchangeExec}
 * @param reason one clause, for the plan and the log
 * @param shown whether the plan says so: always for the columns route, and for the others where a
 *     reader of the plan could have expected columns
 */
record RouteChoice(boolean columns, String reason, boolean shown) {
  static RouteChoice columns(String reason) {
    return new RouteChoice(true, reason, true);
  }

  /** Left to Spark's node although columns were asked for or possible. */
  static RouteChoice refused(String reason) {
    return new RouteChoice(false, reason, true);
  }

  /** Left to Spark's node as a matter of course. */
  static RouteChoice rows(String reason) {
    return new RouteChoice(false, reason, false);
  }
}
