package io.weft.examples.trace;

import io.weft.examples.measure.Environment;
import io.weft.examples.measure.Rounds;
import io.weft.examples.side.Cleanup;
import io.weft.examples.side.WorkFolder;
import io.weft.examples.terminal.Progress;
import io.weft.examples.trace.ReplayReport.ReplayedShuffle;
import io.weft.examples.trace.ReplayReport.ReplayedTransfers;
import io.weft.examples.trace.TracePattern.ShufflePattern;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.function.Function;
import jdk.jfr.Recording;
import org.apache.spark.SparkConf;
import scala.Tuple2;

/**
 * Replays a pattern in this process: shuffle by shuffle, first all map outputs, then all readers,
 * and at last the transfers. Each thread of its shuffles is a thread here, up to a limit. Shuffles
 * are recorded and summed up like the trace. For one use and one thread.
 */
final class Replay {
  /** More threads than this would measure the scheduler. */
  private static final int MAX_THREADS = 256;

  private final TracePattern pattern;
  private final SparkConf conf;
  private final double scale;
  private final Progress progress;

  /**
   * Prepares a replay.
   *
   * @param conf the settings of the executors
   * @param scale factor of all sizes, above 0
   */
  Replay(TracePattern pattern, SparkConf conf, double scale, Progress progress) {
    this.pattern = pattern;
    this.conf = conf;
    this.scale = scale;
    this.progress = progress;
  }

  /** The work of one thread, in order. */
  private interface Step {
    void run() throws IOException;
  }

  /** The figures of one run. */
  private record Totals(Map<Integer, ShuffleTotals> shuffles, TransferTotals transfers) {}

  /** Runs once to warm up, and then this often. */
  ReplayReport run(int runs) throws IOException, InterruptedException {
    List<Totals> results = new ArrayList<>();
    try (Cleanup cleanup = new Cleanup()) {
      Path work = cleanup.add(WorkFolder.create("weft-replay-", false)).path();
      Path memory = cleanup.add(WorkFolder.createInSharedMemory("weft-replay-")).path();
      ReplayExecutors executors =
          cleanup.add(ReplayExecutors.open(pattern.hosts(), conf, memory, work, scale));
      ReplayTransfers transfers =
          cleanup.add(executors.transfers(pattern.transfers(), conf, memory, work));
      ExecutorService threads =
          Executors.newFixedThreadPool(MAX_THREADS, task -> new Thread(task, "weft-replay"));
      cleanup.add((AutoCloseable) threads::shutdownNow);
      new Rounds(1, runs)
          .run(
              List.of(executors),
              (side, run) -> {
                progress.step(run < 0 ? "warming up" : "run " + (run + 1) + " of " + runs);
                Totals totals = once(side, transfers, threads, work);
                if (run >= 0) {
                  results.add(totals);
                }
              });
    }
    return report(results);
  }

  private Totals once(
      ReplayExecutors executors, ReplayTransfers transfers, ExecutorService threads, Path work)
      throws IOException, InterruptedException {
    Map<Integer, ShuffleTotals> totals =
        pattern.shuffles().isEmpty() ? Map.of() : shuffles(executors, threads, work);
    runAll(threads, transfers.work().map(all -> List.<Step>of(all::run)).toList());
    return new Totals(totals, transfers.totals());
  }

  private Map<Integer, ShuffleTotals> shuffles(
      ReplayExecutors executors, ExecutorService threads, Path work)
      throws IOException, InterruptedException {
    Path recorded = work.resolve("replay.jfr");
    try (Recording recording = new Recording()) {
      List.of("Write", "Read", "Wait").forEach(name -> recording.enable("weft." + name));
      recording.start();
      for (ShufflePattern shuffle : pattern.shuffles()) {
        replay(shuffle, executors, threads);
      }
      recording.stop();
      recording.dump(recorded);
    }
    Path trace = work.resolve("replay.json");
    TraceCommand.Merged unused = TraceCommand.merge(List.of(recorded), trace);
    ShuffleTotals.Sums sums = new ShuffleTotals.Sums();
    TraceEvent.forEach(trace, sums::add);
    return sums.totals();
  }

  private void replay(ShufflePattern shuffle, ReplayExecutors executors, ExecutorService threads)
      throws IOException, InterruptedException {
    try {
      runAll(
          threads,
          inTurn(
              shuffle.outputs(),
              output -> output.executor() + " " + output.thread(),
              executors::write));
      runAll(
          threads,
          inTurn(
              shuffle.readers(),
              reader -> reader.executor() + " " + reader.thread(),
              executors::read));
    } finally {
      executors.remove(shuffle.shuffle());
    }
  }

  /** An action on an item of a pattern. */
  private interface Action<T> {
    void on(T item) throws IOException;
  }

  /** Makes one sequence of steps for each thread of the trace. */
  private static <T> Collection<List<Step>> inTurn(
      Collection<T> items, Function<T, String> thread, Action<T> action) {
    Map<String, List<Step>> steps = new LinkedHashMap<>();
    for (T item : items) {
      steps.computeIfAbsent(thread.apply(item), t -> new ArrayList<>()).add(() -> action.on(item));
    }
    return steps.values();
  }

  private static void runAll(ExecutorService threads, Collection<List<Step>> sequences)
      throws IOException, InterruptedException {
    List<Callable<Void>> tasks = new ArrayList<>();
    for (List<Step> sequence : sequences) {
      tasks.add(
          () -> {
            for (Step step : sequence) {
              step.run();
            }
            return null;
          });
    }
    for (Future<Void> done : threads.invokeAll(tasks)) {
      try {
        Void unused = done.get();
      } catch (ExecutionException e) {
        throw new IOException("the replay failed: " + e.getCause().getMessage(), e.getCause());
      }
    }
  }

  private ReplayReport report(List<Totals> results) {
    Environment environment = Environment.current();
    List<ReplayedShuffle> shuffles = new ArrayList<>();
    for (ShufflePattern shuffle : pattern.shuffles()) {
      int id = shuffle.shuffle();
      shuffles.add(
          new ReplayedShuffle(
              pattern.totals().get(id),
              results.stream().map(totals -> totals.shuffles().get(id)).toList()));
    }
    Map<String, String> settings = new LinkedHashMap<>();
    for (Tuple2<String, String> setting : conf.getAll()) {
      settings.put(setting._1(), setting._2());
    }
    return new ReplayReport(
        environment.when(),
        environment.javaVersion(),
        environment.system(),
        environment.cores(),
        pattern.hosts().size(),
        scale,
        settings,
        shuffles,
        new ReplayedTransfers(
            pattern.transfers().totals(pattern.hosts()),
            pattern.transfers().leftOut(),
            results.stream().map(Totals::transfers).toList()));
  }
}
