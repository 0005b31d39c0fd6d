package io.weft.examples.demo;

import io.weft.examples.jobs.ExecutorTotals;
import io.weft.examples.jobs.RunQuery;
import io.weft.examples.jobs.Settle;
import io.weft.examples.measure.Rounds;
import io.weft.examples.measure.Spread;
import io.weft.examples.side.SideProcess;
import io.weft.examples.terminal.Progress;
import io.weft.examples.tpch.TpchQuery;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/** Runs queries on two sides in alternating rounds, and compares the results. */
final class QueryDuel {
  private final SideProcess spark;
  private final SideProcess weft;
  private final int runs;
  private final Progress progress;

  QueryDuel(SideProcess spark, SideProcess weft, int runs, Progress progress) {
    this.spark = spark;
    this.weft = weft;
    this.runs = runs;
    this.progress = progress;
  }

  Outcome run(TpchQuery query, String title) throws IOException, InterruptedException {
    progress.step(title);
    RunQuery task = new RunQuery(query.text());
    progress.detail(title + ", warming up");
    List<String> expected = spark.call(task).rows();
    ExecutorTotals before = weft.call(new ExecutorTotals.Collect());
    List<String> actual = weft.call(task).rows();
    ExecutorTotals moved = weft.call(new ExecutorTotals.Collect()).since(before);
    List<Double> sparkSeconds = new ArrayList<>();
    List<Double> weftSeconds = new ArrayList<>();
    List<Optional<String>> differences = new ArrayList<>();
    differences.add(difference(query, expected, actual));
    new Rounds(0, runs)
        .run(
            List.of(spark, weft),
            (side, run) -> {
              String label = side.options().label();
              progress.detail(title + ", run " + (run + 1) + " of " + runs + " under " + label);
              side.call(new Settle());
              RunQuery.Result result = side.call(task);
              (side == spark ? sparkSeconds : weftSeconds).add(result.cost().seconds());
              differences.add(difference(query, expected, result.rows()));
            });
    return new Outcome(
        query,
        expected.size(),
        new Spread(sparkSeconds),
        new Spread(weftSeconds),
        differences.stream().flatMap(Optional::stream).findFirst(),
        moved);
  }

  private static Optional<String> difference(
      TpchQuery query, List<String> expected, List<String> actual) {
    return ResultCheck.difference(expected, actual, query.totalOrder());
  }

  /**
   * The outcome of one query.
   *
   * @param rows of its result
   * @param spark seconds under Spark's shuffle
   * @param weft seconds under Weft
   * @param difference the first difference between results; empty if all runs are equal
   * @param moved the bytes that Weft's executors moved in one run
   */
  record Outcome(
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

  /** Compares results digit by digit. */
  static final class ResultCheck {
    private ResultCheck() {}

    /**
     * Returns the first difference; empty if the results are equal.
     *
     * @param ordered whether the order of the rows counts; else only the count of each row
     */
    static Optional<String> difference(
        List<String> expected, List<String> actual, boolean ordered) {
      if (expected.size() != actual.size()) {
        return Optional.of(expected.size() + " rows under Spark, " + actual.size() + " under Weft");
      }
      return ordered ? inOrder(expected, actual) : asBag(expected, actual);
    }

    private static Optional<String> inOrder(List<String> expected, List<String> actual) {
      for (int i = 0; i < expected.size(); i++) {
        if (!expected.get(i).equals(actual.get(i))) {
          return Optional.of(
              "row "
                  + (i + 1)
                  + " is "
                  + expected.get(i)
                  + " under Spark and "
                  + actual.get(i)
                  + " under Weft");
        }
      }
      return Optional.empty();
    }

    private static Optional<String> asBag(List<String> expected, List<String> actual) {
      Map<String, Integer> counts = new HashMap<>();
      expected.forEach(row -> counts.merge(row, 1, Integer::sum));
      for (String row : actual) {
        if (counts.merge(row, -1, Integer::sum) < 0) {
          return Optional.of("Weft has a row too many: " + row);
        }
      }
      return Optional.empty();
    }
  }
}
