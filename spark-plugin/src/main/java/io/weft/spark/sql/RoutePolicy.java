package io.weft.spark.sql;

import io.weft.spark.columns.ColumnarSchema;
import io.weft.spark.compat.SparkFeatures;
import io.weft.spark.config.Route;
import java.util.Optional;
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning;
import org.apache.spark.sql.catalyst.plans.physical.Partitioning;
import org.apache.spark.sql.catalyst.plans.physical.RangePartitioning;
import org.apache.spark.sql.catalyst.plans.physical.RoundRobinPartitioning;
import org.apache.spark.sql.catalyst.plans.physical.SinglePartition$;
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec;

/** Chooses the route of an exchange, with a reason. */
final class RoutePolicy {
  private RoutePolicy() {}

  /**
   * Chooses between the columns route and leaving the exchange as Spark planned it.
   *
   * @param exchange Spark's node
   * @param setting the session's setting
   */
  static RouteChoice choose(ShuffleExchangeExec exchange, Route setting) {
    if (setting == Route.ROWS) {
      return RouteChoice.rows("spark.weft.route=rows");
    }
    if (setting == Route.AUTO && !exchange.child().supportsColumnar()) {
      return RouteChoice.rows("its input is rows");
    }
    Optional<String> obstacle = obstacle(exchange);
    if (obstacle.isPresent()) {
      return RouteChoice.refused(obstacle.get());
    }
    return setting == Route.COLUMNS
        ? RouteChoice.columns("spark.weft.route=columns")
        : automatic(exchange);
  }

  /** Returns why the columns route does not support this exchange; empty if it does. */
  private static Optional<String> obstacle(ShuffleExchangeExec exchange) {
    Partitioning partitioning = exchange.outputPartitioning();
    if (!known(partitioning)) {
      return Optional.of("partitioning " + partitioning.getClass().getSimpleName());
    }
    return ColumnarSchema.unsupportedReason(exchange.schema());
  }

  private static boolean known(Partitioning partitioning) {
    return partitioning instanceof HashPartitioning
        || partitioning instanceof RangePartitioning
        || partitioning instanceof RoundRobinPartitioning
        || partitioning == SinglePartition$.MODULE$;
  }

  /** Chooses for input in batches that both routes support. */
  private static RouteChoice automatic(ShuffleExchangeExec exchange) {
    if (DeviceRoute.isGiven(exchange.child())
        && SparkFeatures.rowChecksums(exchange.conf()).isComputed()) {
      return RouteChoice.refused(
          "its input is on GPUs and row checksums are on (" + SparkFeatures.ROW_CHECKSUMS + "*)");
    }
    return DependencyBuilder.rowsObstacle(exchange.outputPartitioning(), exchange.conf())
        .map(RouteChoice::refused)
        .orElseGet(() -> RouteChoice.columns("its input is batches"));
  }

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
}
