package io.weft.examples.bench.transfer;

import io.weft.examples.measure.Report;
import io.weft.examples.measure.Rounds;
import java.util.List;
import org.HdrHistogram.Histogram;

/**
 * The report of {@code weft bench transfer}.
 *
 * @param when the time of the end, in ISO form
 * @param weftVersion of the project
 * @param javaVersion of all processes
 * @param system the operating system
 * @param cores of the machine
 * @param runs that count
 * @param load of the machine just before, the system's average over a minute; negative if unknown
 * @param rows with a goal
 * @param latencies of one block of 1 KiB; empty if they were not asked for
 */
public record TransferReport(
    String when,
    String weftVersion,
    String javaVersion,
    String system,
    int cores,
    int runs,
    double load,
    List<RowResult> rows,
    List<LatencyFigures> latencies)
    implements Report {
  public TransferReport {
    rows = List.copyOf(rows);
    latencies = List.copyOf(latencies);
  }

  @Override
  public String fileName() {
    return "transfer";
  }

  @Override
  public Text text() {
    return new TransferTable(this).text();
  }

  /** Always: a missed goal is shown, but it is no failure. */
  @Override
  public boolean passed() {
    return true;
  }

  /**
   * One row of the benchmark.
   *
   * @param id short
   * @param title for the notes
   * @param bytes that move in a run; 0 if the row does not measure bytes
   * @param sides the side with the goal first
   */
  public record RowResult(
      String id, String title, long bytes, List<Rounds.SideFigures> sides, Goal goal) {
    public RowResult {
      sides = List.copyOf(sides);
    }
  }

  /**
   * The goal of a row and the result.
   *
   * @param text the goal in words
   * @param reached the result, from medians or from the worst run, as the text says
   * @param unit of the result
   * @param met whether the result meets the goal
   */
  public record Goal(String text, double reached, String unit, boolean met) {
    static Goal atLeast(String text, double reached, String unit, double wanted) {
      return new Goal(text, reached, unit, reached >= wanted);
    }

    static Goal atMost(String text, double reached, String unit, double wanted) {
      return new Goal(text, reached, unit, reached <= wanted);
    }
  }

  /**
   * The latency of single reads, in microseconds.
   *
   * @param side the way to read
   * @param count of reads
   * @param mean of all
   * @param percentiles at {@link #PERCENTILES}, and the longest as the last
   */
  public record LatencyFigures(String side, long count, double mean, List<Double> percentiles) {
    /** The percentiles to show; the last one is the longest read. */
    public static final List<Double> PERCENTILES = List.of(50.0, 90.0, 99.0, 99.9, 100.0);

    public LatencyFigures {
      percentiles = List.copyOf(percentiles);
    }

    static LatencyFigures of(String side, Histogram nanos) {
      return new LatencyFigures(
          side,
          nanos.getTotalCount(),
          nanos.getMean() / 1e3,
          PERCENTILES.stream().map(at -> nanos.getValueAtPercentile(at) / 1e3).toList());
    }
  }
}
