package io.weft.examples.bench;

import java.util.List;

/**
 * What a benchmark found, for every form of report.
 *
 * @param when it ran, in ISO form
 * @param weftVersion of the project
 * @param sparkVersion of the cluster
 * @param javaVersion of all processes
 * @param system the operating system
 * @param cores of the machine
 * @param cluster the Spark master
 * @param copyBytesPerSecond the median of how fast two threads copied memory during the run
 * @param runs that count, at most
 * @param results of the workloads, then of the queries
 */
public record BenchReport(
    String when,
    String weftVersion,
    String sparkVersion,
    String javaVersion,
    String system,
    int cores,
    String cluster,
    double copyBytesPerSecond,
    int runs,
    List<WorkloadResult> results) {
  public BenchReport {
    results = List.copyOf(results);
  }
}
