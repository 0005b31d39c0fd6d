package io.weft.examples.demo;

import io.weft.examples.jobs.ExecutorTotals;
import io.weft.examples.jobs.LookAtExecutors;
import io.weft.examples.jobs.QueryRun;
import io.weft.examples.jobs.RunQuery;
import io.weft.examples.jobs.Settle;
import io.weft.examples.measure.Spread;
import io.weft.examples.side.SideException;
import io.weft.examples.side.SideProcess;
import io.weft.examples.terminal.Progress;
import io.weft.examples.tpch.TpchQuery;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/**
 * Runs queries on two sides in turn: which goes first changes with every run, so that neither gains
 * from what the other leaves in the machine's caches.
 */
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

  QueryOutcome run(TpchQuery query, String title) throws SideException, InterruptedException {
    progress.step(title);
    RunQuery task = new RunQuery(query.text());
    progress.detail(title + ", warming up");
    List<String> expected = spark.call(task).rows();
    ExecutorTotals before = weft.call(new LookAtExecutors());
    List<String> actual = weft.call(task).rows();
    ExecutorTotals moved = weft.call(new LookAtExecutors()).since(before);
    Optional<String> difference = difference(query, expected, actual);
    List<Double> sparkSeconds = new ArrayList<>();
    List<Double> weftSeconds = new ArrayList<>();
    for (int run = 0; run < runs; run++) {
      for (SideProcess side : run % 2 == 0 ? List.of(spark, weft) : List.of(weft, spark)) {
        progress.detail(
            title + ", run " + (run + 1) + " of " + runs + " under " + side.options().label());
        side.call(new Settle());
        QueryRun result = side.call(task);
        (side == spark ? sparkSeconds : weftSeconds).add(result.cost().seconds());
        difference = difference.or(() -> difference(query, expected, result.rows()));
      }
    }
    return new QueryOutcome(
        query,
        expected.size(),
        new Spread(sparkSeconds),
        new Spread(weftSeconds),
        difference,
        moved);
  }

  private static Optional<String> difference(
      TpchQuery query, List<String> expected, List<String> actual) {
    return ResultCheck.difference(expected, actual, query.totalOrder());
  }
}
