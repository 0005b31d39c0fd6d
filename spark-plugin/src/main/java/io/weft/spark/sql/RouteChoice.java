package io.weft.spark.sql;

/**
 * The route of one exchange and its reason.
 *
 * @param columns whether the exchange becomes a {@link WeftShuffleExchangeExec}
 * @param reason reason as a clause, for the plan and the log
 * @param shown whether the plan shows the reason: always for the columns route, for rows only if
 *     the user could expect columns
 */
record RouteChoice(boolean columns, String reason, boolean shown) {
  static RouteChoice columns(String reason) {
    return new RouteChoice(true, reason, true);
  }

  /** Keeps Spark's node although columns were requested or possible. */
  static RouteChoice refused(String reason) {
    return new RouteChoice(false, reason, true);
  }

  /** Keeps Spark's node as expected. */
  static RouteChoice rows(String reason) {
    return new RouteChoice(false, reason, false);
  }
}
