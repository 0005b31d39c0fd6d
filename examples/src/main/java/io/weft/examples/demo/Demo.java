package io.weft.examples.demo;

import io.weft.examples.jobs.OpenTables;
import io.weft.examples.side.Cleanup;
import io.weft.examples.side.Leftovers;
import io.weft.examples.side.SideException;
import io.weft.examples.side.SideLauncher;
import io.weft.examples.side.SideProcess;
import io.weft.examples.side.Sides;
import io.weft.examples.side.WorkFolder;
import io.weft.examples.terminal.Progress;
import io.weft.examples.terminal.Units;
import io.weft.examples.tpch.TableWriter;
import io.weft.examples.tpch.TpchQuery;
import io.weft.examples.tpch.TpchTables;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** The demo from start to end. Used once, by one thread. */
public final class Demo {
  private static final long BROADCAST_BYTES_AT_SCALE_1 = 1 << 20;

  private final DemoOptions options;
  private final Progress progress;
  private final PrintStream out;

  /** Writes its result to a stream and what it is doing to the progress line. */
  public Demo(DemoOptions options, Progress progress, PrintStream out) {
    this.options = options;
    this.progress = progress;
    this.out = out;
  }

  /** Runs it and returns whether all results were equal. */
  public boolean run() throws IOException, InterruptedException {
    List<QueryOutcome> outcomes;
    String weftApplication;
    try (Cleanup cleanup = new Cleanup()) {
      WorkFolder work = cleanup.add(WorkFolder.create("weft-demo-", options.keep()));
      SideLauncher launcher = SideLauncher.create(work);
      Path tables = tables(launcher, work, cleanup);
      progress.step("starting two clusters of two executors each");
      SideProcess spark = cleanup.add(launcher.start(Sides.spark(common())));
      SideProcess weft = cleanup.add(launcher.start(Sides.weft(options.transport(), common())));
      OpenTables open = new OpenTables(tables.toString(), TpchTables.names());
      spark.call(open);
      weft.call(open);
      weftApplication = weft.awaitReady();
      outcomes = compare(new QueryDuel(spark, weft, options.runs(), progress));
      progress.step("stopping the clusters");
    }
    progress.clear();
    report(outcomes, Leftovers.find(weftApplication));
    return outcomes.stream().allMatch(outcome -> outcome.difference().isEmpty());
  }

  private Path tables(SideLauncher launcher, WorkFolder work, Cleanup cleanup)
      throws IOException, InterruptedException {
    Path folder =
        options.data().isPresent() ? options.data().get().toAbsolutePath() : work.folder("tpch");
    if (TpchTables.complete(folder, options.scale())) {
      progress.step("using the tables in " + folder);
    } else {
      new TableWriter(launcher, cleanup, progress).write(folder, options.scale());
    }
    return folder;
  }

  private Map<String, String> common() {
    // Small tables make Spark broadcast what it would shuffle at the sizes that shuffles are for.
    // The limit follows the scale, so that the plans are those of Spark's 10 MiB at scale 10.
    long broadcast = Math.max(1, (long) (options.scale() * BROADCAST_BYTES_AT_SCALE_1));
    return Map.of("spark.sql.autoBroadcastJoinThreshold", Long.toString(broadcast));
  }

  private List<QueryOutcome> compare(QueryDuel duel) throws SideException, InterruptedException {
    List<QueryOutcome> outcomes = new ArrayList<>();
    for (TpchQuery query : options.queries()) {
      String place = (outcomes.size() + 1) + " of " + options.queries().size();
      outcomes.add(duel.run(query, "query " + query + " (" + place + ")"));
    }
    return outcomes;
  }

  private void report(List<QueryOutcome> outcomes, List<Path> leftovers) throws IOException {
    out.printf(
        "%nTPC-H at scale %s, %s, medians of %d runs in turn, transport %s%n%n",
        options.scale(), Sides.CLUSTER, options.runs(), options.transport());
    out.print(DemoTable.render(outcomes));
    out.println();
    out.println(
        "Each query ran under Spark's shuffle and under Weft; \"faster\" is the ratio of the medians,"
            + " in the last line their geometric mean.");
    out.println(
        "\"own\" and \"same host\" were read in place through shared memory, \"network\" was received"
            + " over TCP, \"spilled\" went to disk.");
    outcomes.forEach(
        outcome ->
            outcome
                .difference()
                .ifPresent(text -> out.println(outcome.query() + " IS NOT EQUAL: " + text)));
    for (Path leftover : leftovers) {
      out.println("Weft left " + leftover + " behind; removed.");
      WorkFolder.delete(leftover);
    }
    out.println("Took " + Units.clock(progress.elapsed()) + ".");
  }
}
