package io.weft.examples.bench.shuffle;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.weft.examples.measure.Report;
import io.weft.examples.measure.Spread;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * The report of {@code weft bench shuffle}.
 *
 * @param when the time of the end, in ISO form
 * @param weftVersion of the project
 * @param sparkVersion of the cluster
 * @param javaVersion of all processes
 * @param system the operating system
 * @param cores of the machine
 * @param cluster the Spark master
 * @param settings of all sides, given by the user
 * @param copyBytesPerSecond the median speed at which two threads copied memory during the run
 * @param warmUps runs on each side before those
 * @param runs that count on each side; an upper limit
 * @param results of the workloads, then of the queries
 * @param left workloads and queries that follow; not 0 if the run was interrupted
 */
public record ShuffleReport(
    String when,
    String weftVersion,
    String sparkVersion,
    String javaVersion,
    String system,
    int cores,
    String cluster,
    Map<String, String> settings,
    double copyBytesPerSecond,
    int warmUps,
    int runs,
    List<WorkloadResult> results,
    int left)
    implements Report {
  public ShuffleReport {
    // Earlier versions wrote no settings, and had one warm-up.
    settings = settings == null ? Map.of() : Map.copyOf(settings);
    warmUps = Math.max(1, warmUps);
    results = List.copyOf(results);
  }

  @Override
  public String fileName() {
    return "shuffle";
  }

  @Override
  public Text text() {
    return new ShuffleTable(this).text();
  }

  @Override
  public Optional<String> chart() {
    return Optional.of(new ShuffleChart(this).toSvg());
  }

  /** Whether all sides came to the same results. */
  @Override
  public boolean passed() {
    return results.stream().allMatch(WorkloadResult::equal);
  }

  /** Adds how every side compares with Spark and with a copy. */
  @Override
  public void addDerived(ObjectNode json) {
    for (int i = 0; i < results.size(); i++) {
      WorkloadResult result = results.get(i);
      for (int j = 0; j < result.sides().size(); j++) {
        SideResult side = result.sides().get(j);
        ObjectNode node = (ObjectNode) json.path("results").path(i).path("sides").path(j);
        node.put("timesFaster", result.speedup(side));
        node.put("timesLessCpu", result.cpuSpeedup(side));
        node.put("timesLessProcessCpu", result.processCpuSpeedup(side));
        result.timesCopy(side).ifPresent(times -> node.put("timesCopy", times));
      }
    }
  }

  /**
   * The result of one workload.
   *
   * @param id its name
   * @param title for tables
   * @param query whether it is a whole query rather than a shuffle
   * @param rows shuffled; 0 for a query
   * @param dataBytes of data in those rows; 0 for a query
   * @param copyBytesPerSecond the speed at which two threads copied memory just before or after
   * @param problem why it failed, or how the results of the sides differ; null if all are equal
   * @param sides Spark's own shuffle first; none if it failed
   */
  public record WorkloadResult(
      String id,
      String title,
      boolean query,
      long rows,
      long dataBytes,
      double copyBytesPerSecond,
      String problem,
      List<SideResult> sides) {
    public WorkloadResult {
      sides = List.copyOf(sides);
    }

    /** Whether all sides came to the same result. */
    public boolean equal() {
      return problem == null;
    }

    /** Whether it was measured on all sides. */
    public boolean measured() {
      return !sides.isEmpty();
    }

    /** The side that the others are compared with. */
    public SideResult spark() {
      return sides.get(0);
    }

    /** How many times less time a side takes than Spark. */
    public double speedup(SideResult side) {
      return spark().shuffleSeconds().median() / side.shuffleSeconds().median();
    }

    /** How many times less CPU time a side takes than Spark. */
    public double cpuSpeedup(SideResult side) {
      return spark().shuffleCpuSeconds().median() / side.shuffleCpuSeconds().median();
    }

    /** How many times less CPU time the executor processes of a side take than those of Spark. */
    public double processCpuSpeedup(SideResult side) {
      return spark().shuffleProcessCpuSeconds().median() / side.shuffleProcessCpuSeconds().median();
    }

    /** A side's time as a multiple of one copy of the data; empty for a query. */
    public Optional<Double> timesCopy(SideResult side) {
      return query || dataBytes == 0
          ? Optional.empty()
          : Optional.of(side.shuffleSeconds().median() * copyBytesPerSecond / dataBytes);
    }
  }

  /**
   * The result of one side in one workload. The time of a shuffle is the time of the whole job less
   * the median of the same job without the shuffle. The time of a query is the whole.
   *
   * @param side its short name
   * @param label for tables
   * @param baseSeconds the job without the shuffle; null for a query
   * @param jobSeconds the whole job
   * @param shuffleSeconds the shuffle
   * @param shuffleCpuSeconds of the shuffle, on the threads of its tasks only
   * @param shuffleProcessCpuSeconds of the shuffle, on all threads of the executor processes
   * @param storedBytes that map tasks wrote, in their stored form
   * @param ownBytes of a run, read in place by the executor that wrote them
   * @param sameHostBytes of a run, read in place by another executor
   * @param networkBytes of a run, received over the network
   * @param spilledBytes of all runs, written to disk because memory was full
   * @param firstFreshBytes shared memory touched for the first time before the runs that count
   * @param laterFreshBytes the same in the runs that count: 0 where memory is reused
   */
  public record SideResult(
      String side,
      String label,
      Spread baseSeconds,
      Spread jobSeconds,
      Spread shuffleSeconds,
      Spread shuffleCpuSeconds,
      Spread shuffleProcessCpuSeconds,
      long storedBytes,
      long ownBytes,
      long sameHostBytes,
      long networkBytes,
      long spilledBytes,
      long firstFreshBytes,
      long laterFreshBytes) {}
}
