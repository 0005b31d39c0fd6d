package io.weft.examples.demo;

import io.weft.examples.jobs.ExecutorTotals;
import io.weft.examples.measure.Spread;
import io.weft.examples.tpch.TpchQuery;
import java.util.Optional;

/**
 * One query under both.
 *
 * @param rows of its result
 * @param spark seconds under Spark's shuffle
 * @param weft seconds under Weft
 * @param difference between results, empty if all of all runs are equal
 * @param moved what Weft's executors moved in one run
 */
record QueryOutcome(
    TpchQuery query,
    int rows,
    Spread spark,
    Spread weft,
    Optional<String> difference,
    ExecutorTotals moved) {
  /** How many times faster Weft is. */
  double ratio() {
    return spark.median() / weft.median();
  }
}
