package io.weft.examples.demo;

import io.weft.examples.jobs.OpenTables;
import io.weft.examples.measure.Rounds;
import io.weft.examples.side.Cleanup;
import io.weft.examples.side.SideLauncher;
import io.weft.examples.side.SideOptions;
import io.weft.examples.side.SideProcess;
import io.weft.examples.side.WorkFolder;
import io.weft.examples.tables.TableWriter;
import io.weft.examples.terminal.Progress;
import io.weft.examples.terminal.Units;
import io.weft.examples.tpch.TpchQuery;
import io.weft.examples.tpch.TpchTables;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/** Runs the whole demo. For one use and one thread. */
final class Demo {
  private static final long BROADCAST_BYTES_AT_SCALE_1 = 1 << 20;

  private final Options options;
  private final Progress progress;
  private final PrintStream out;

  /** Writes its result to a stream and shows its steps on the progress line. */
  Demo(Options options, Progress progress, PrintStream out) {
    this.options = options;
    this.progress = progress;
    this.out = out;
  }

  /** Runs the demo and returns whether all results are equal. */
  boolean run() throws IOException, InterruptedException {
    List<QueryDuel.Outcome> outcomes;
    String weftApplication;
    try (Cleanup cleanup = new Cleanup()) {
      WorkFolder work = cleanup.add(WorkFolder.create("weft-demo-", options.keep()));
      SideLauncher launcher = SideLauncher.create(work);
      Path tables =
          new TableWriter(launcher, cleanup, progress)
              .provide(TpchTables.ALL, options.data(), work, options.scale());
      progress.step("starting two clusters of two executors each");
      SideProcess spark = cleanup.add(launcher.start(SideOptions.spark(common())));
      SideProcess weft =
          cleanup.add(launcher.start(SideOptions.weft(options.transport(), common())));
      OpenTables open = new OpenTables(tables.toString(), TpchTables.ALL.names());
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

  private Map<String, String> common() {
    // Spark broadcasts small tables that it would shuffle at realistic sizes. The limit follows the
    // scale, so the plans are the same as with Spark's default of 10 MiB at scale 10.
    long broadcast = Math.max(1, (long) (options.scale() * BROADCAST_BYTES_AT_SCALE_1));
    return Map.of("spark.sql.autoBroadcastJoinThreshold", Long.toString(broadcast));
  }

  private List<QueryDuel.Outcome> compare(QueryDuel duel) throws IOException, InterruptedException {
    List<QueryDuel.Outcome> outcomes = new ArrayList<>();
    for (TpchQuery query : options.queries()) {
      String place = (outcomes.size() + 1) + " of " + options.queries().size();
      outcomes.add(duel.run(query, "query " + query + " (" + place + ")"));
    }
    return outcomes;
  }

  private void report(List<QueryDuel.Outcome> outcomes, List<Path> leftovers) throws IOException {
    out.printf(
        "%nTPC-H at scale %s, %s, medians of %d alternating runs, transport %s%n%n",
        options.scale(), SideOptions.CLUSTER, options.runs(), options.transport());
    out.print(DemoTable.render(outcomes));
    out.println();
    out.println(
        "Each query ran under Spark's shuffle and under Weft. \"faster\" is the ratio of the"
            + " medians, and in the last line their geometric mean.");
    out.println(
        "\"own\" and \"same host\" bytes were read in place through shared memory, \"network\""
            + " bytes were received over TCP, \"spilled\" bytes went to disk.");
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

  /**
   * The choice of queries and sizes.
   *
   * @param scale the TPC-H scale factor, more than 0
   * @param queries in the order to run them
   * @param runs of each query on each side that count, at least 1, after one warm-up
   * @param data a folder of tables to reuse or to create; empty for a temporary one
   * @param transport a value of spark.weft.transport
   * @param keep whether the temporary folder with its logs stays
   */
  record Options(
      double scale,
      List<TpchQuery> queries,
      int runs,
      Optional<Path> data,
      String transport,
      boolean keep) {
    Options {
      queries = List.copyOf(queries);
      if (!(scale > 0)) {
        throw new IllegalArgumentException("the scale must be more than 0, not " + scale);
      }
      Rounds.requireRuns(runs);
      SideOptions.requireTransport(transport);
    }
  }

  /** Finds files in shared memory that an application should have removed. */
  static final class Leftovers {
    private static final Path SHARED_MEMORY = Path.of("/dev/shm");

    private Leftovers() {}

    /** Returns the folders that an ended application left. */
    static List<Path> find(String applicationId) throws IOException {
      return find(SHARED_MEMORY, applicationId);
    }

    static List<Path> find(Path sharedMemory, String applicationId) throws IOException {
      List<Path> found = new ArrayList<>();
      if (Files.isDirectory(sharedMemory)) {
        try (DirectoryStream<Path> users = Files.newDirectoryStream(sharedMemory, "weft-*")) {
          for (Path user : users) {
            addApplication(user, applicationId, found);
          }
        }
      }
      return found;
    }

    private static void addApplication(Path user, String applicationId, List<Path> found)
        throws IOException {
      if (!Files.isReadable(user)) {
        return;
      }
      try (DirectoryStream<Path> applications =
          Files.newDirectoryStream(user, path -> startsWith(path, applicationId + "-"))) {
        applications.forEach(found::add);
      }
    }

    private static boolean startsWith(Path path, String prefix) {
      return path.getFileName().toString().startsWith(prefix);
    }
  }
}
