package io.weft.examples.bench.transfer;

import java.util.List;

/**
 * What the benchmark of transfers found, for every form of report.
 *
 * @param when it ran, in ISO form
 * @param weftVersion of the project
 * @param javaVersion of all processes
 * @param system the operating system
 * @param cores of the machine
 * @param runs that count
 * @param load of the machine just before, as the system averages it over a minute; negative if it
 *     does not
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
    List<LatencyFigures> latencies) {
  public TransferReport {
    rows = List.copyOf(rows);
    latencies = List.copyOf(latencies);
  }
}
