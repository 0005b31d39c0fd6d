package io.weft.spark.ui;

import io.weft.spark.runtime.Messages.ExecutorReport;
import io.weft.spark.runtime.Messages.Report;
import io.weft.spark.runtime.WeftMetrics;
import io.weft.spark.runtime.WeftMetrics.Metric;
import io.weft.spark.runtime.WeftMetrics.Metric.Kind;
import io.weft.spark.ui.ExecutorRow.MemorySample;
import io.weft.spark.ui.Overview.CollectiveRow;
import io.weft.transfers.TransferCounter;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Stream;

/**
 * The running executors of an application, and the last {@link #MAX_ENDED} that ended. Keeps at
 * most {@link #MAX_SAMPLES} samples of the memory of each: if there are more, every other one goes,
 * and the time between samples doubles. Thread-safe.
 */
public final class ExecutorTable {
  /** Maximum number of ended executors. */
  static final int MAX_ENDED = 200;

  /** Maximum number of samples of an executor's memory. */
  static final int MAX_SAMPLES = 60;

  private static final String CALLS = "collectiveCalls";
  private static final long FIRST_PAUSE_MILLIS = 2_000;

  private final Map<String, Executor> running = new LinkedHashMap<>();
  private final Map<String, Executor> ended = new LinkedHashMap<>();
  private final Set<String> changed = new LinkedHashSet<>();

  /** Counters of ended executors that are no longer in the table. */
  private final Map<String, Long> dropped = new TreeMap<>();

  /** The figures of one executor. */
  private static final class Executor {
    private final String id;
    private final String host;
    private final List<MemorySample> memory = new ArrayList<>();
    private String warning = "";
    private Map<String, Long> values = Map.of();
    private long pauseMillis = FIRST_PAUSE_MILLIS;
    private boolean last;

    Executor(String id, String host) {
      this.id = id;
      this.host = host;
    }

    /** The newest sample is always kept, older ones only with a pause between them. */
    void add(MemorySample sample) {
      int size = memory.size();
      if (size > 1 && sample.time() - memory.get(size - 2).time() < pauseMillis) {
        memory.set(size - 1, sample);
        return;
      }
      memory.add(sample);
      if (memory.size() > MAX_SAMPLES) {
        for (int i = memory.size() - 2; i > 0; i -= 2) {
          memory.remove(i);
        }
        pauseMillis *= 2;
      }
    }

    ExecutorRow row(boolean isRunning) {
      return new ExecutorRow(id, host, isRunning, warning, values, memory);
    }
  }

  /** Returns how many of a counter were added since the executor's last report. */
  synchronized long reported(Report message, boolean late, String counter, long time) {
    ExecutorReport report = message.report();
    if (late && !ended.containsKey(report.executorId())) {
      return 0;
    }
    Executor executor = at(report.executorId(), report.host());
    long before = executor.values.getOrDefault(counter, 0L);
    // Immutable, so that no row has to copy it.
    executor.values = Map.copyOf(report.values());
    executor.last |= message.last();
    notifyAll();
    executor.add(
        new MemorySample(
            time,
            report.get(WeftMetrics.MEMORY_USED),
            report.get(WeftMetrics.MEMORY_RESERVED),
            report.get(WeftMetrics.MEMORY_BUDGET),
            report.get(WeftMetrics.DISK_USED)));
    return report.get(counter) - before;
  }

  /** Records a warning about a running executor. */
  synchronized void warned(String id, String host, String warning) {
    at(id, host).warning = warning;
  }

  private Executor at(String id, String host) {
    changed.add(id);
    Executor known = ended.get(id);
    return known != null ? known : running.computeIfAbsent(id, i -> new Executor(i, host));
  }

  /** Records that an executor ended. Returns its host, if it is known. */
  synchronized Optional<String> ended(String id) {
    Executor executor = running.remove(id);
    if (executor == null) {
      return Optional.empty();
    }
    changed.add(id);
    addEnded(executor);
    return Optional.of(executor.host);
  }

  private void addEnded(Executor executor) {
    ended.put(executor.id, executor);
    if (ended.size() > MAX_ENDED) {
      Executor oldest = ended.remove(ended.keySet().iterator().next());
      changed.remove(oldest.id);
      counters(oldest.values).forEach((name, value) -> dropped.merge(name, value, Long::sum));
    }
  }

  private static Map<String, Long> counters(Map<String, Long> values) {
    Map<String, Long> counters = new TreeMap<>();
    WeftMetrics.all().stream()
        .filter(metric -> metric.kind() == Kind.COUNTER && values.containsKey(metric.name()))
        .forEach(metric -> counters.put(metric.name(), values.get(metric.name())));
    return counters;
  }

  /** Replaces the figures of an executor. One that has ended stays so. */
  synchronized void set(ExecutorRow row) {
    Executor executor = new Executor(row.id(), row.host());
    executor.warning = row.warning();
    executor.values = row.values();
    executor.memory.addAll(row.memory());
    running.remove(row.id());
    if (ended.containsKey(row.id())) {
      ended.put(row.id(), executor);
    } else if (row.running()) {
      running.put(row.id(), executor);
    } else {
      addEnded(executor);
    }
  }

  /** The sum of a metric over all executors that ever ran. */
  synchronized long total(String metric) {
    long sum = dropped.getOrDefault(metric, 0L);
    for (Map<String, Executor> executors : List.of(running, ended)) {
      for (Executor executor : executors.values()) {
        sum += executor.values.getOrDefault(metric, 0L);
      }
    }
    return sum;
  }

  /** The collectives by algorithm, and the transfers, of all executors that ever ran. */
  public List<CollectiveRow> collectives() {
    List<CollectiveRow> rows = new ArrayList<>();
    for (Metric metric : WeftMetrics.all()) {
      String algorithm = metric.name().replaceFirst("^" + CALLS, "");
      long calls = metric.name().startsWith(CALLS) ? total(metric.name()) : 0;
      if (calls > 0 && !algorithm.isEmpty()) {
        long bytes = total("collectiveBytes" + algorithm);
        rows.add(new CollectiveRow(algorithm, calls, bytes, total("collectiveNanos" + algorithm)));
      }
    }
    long sent = total(WeftMetrics.name(TransferCounter.SENT));
    if (sent > 0) {
      long bytes = total(WeftMetrics.name(TransferCounter.BYTES_SENT));
      rows.add(new CollectiveRow("Transfers", sent, bytes, 0));
    }
    return rows;
  }

  /** Returns the executors that have changed since the last call. */
  synchronized List<ExecutorRow> takeChanged() {
    List<ExecutorRow> rows =
        inOrder().filter(each -> changed.contains(each.executor.id)).map(Listed::row).toList();
    changed.clear();
    return rows;
  }

  /**
   * Waits until all running executors have sent their last reports.
   *
   * @param timeout after which it waits no more
   */
  public synchronized void awaitLast(Duration timeout) throws InterruptedException {
    long deadline = System.nanoTime() + timeout.toNanos();
    long left = timeout.toMillis();
    while (left > 0 && running.values().stream().anyMatch(executor -> !executor.last)) {
      wait(left);
      left = Duration.ofNanos(deadline - System.nanoTime()).toMillis();
    }
  }

  /**
   * A part of the table.
   *
   * @param rows of this page
   * @param total number of executors in the table
   */
  record ExecutorPage(List<ExecutorRow> rows, int total) {}

  /**
   * Returns a page of all executors, in the order of {@link #rows}.
   *
   * @param from number of rows before the page
   * @param count maximum number of rows
   */
  synchronized ExecutorPage page(long from, int count) {
    return new ExecutorPage(
        inOrder().skip(from).limit(count).map(Listed::row).toList(), running.size() + ended.size());
  }

  /** All executors, the running ones first, by id. */
  public synchronized List<ExecutorRow> rows() {
    return inOrder().map(Listed::row).toList();
  }

  /** An executor in the table. Its row copies the samples, so a page makes only its own. */
  private record Listed(Executor executor, boolean isRunning) {
    ExecutorRow row() {
      return executor.row(isRunning);
    }
  }

  private Stream<Listed> inOrder() {
    return Stream.concat(sorted(running, true), sorted(ended, false));
  }

  private static Stream<Listed> sorted(Map<String, Executor> executors, boolean isRunning) {
    return executors.values().stream()
        .sorted(Comparator.comparing((Executor executor) -> executor.id, Texts.NUMBERS_FIRST))
        .map(executor -> new Listed(executor, isRunning));
  }
}
