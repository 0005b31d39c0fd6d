package io.weft.examples.bench.collectives;

import java.util.List;

/**
 * What the benchmark of collectives found, for every form of report.
 *
 * @param when it ran, in ISO form
 * @param weftVersion of the project
 * @param javaVersion of the ranks
 * @param mpiVersion of OpenMPI, or why there was none
 * @param system the operating system
 * @param cores of the machine
 * @param nranks processes on each side
 * @param copyAlone bytes a second that one thread copies alone
 * @param copyTogether bytes a second that each of so many threads as ranks copies
 * @param runs that count
 * @param bound whether each rank had a processor of its own
 * @param results by operation, then size
 */
public record CollectivesReport(
    String when,
    String weftVersion,
    String javaVersion,
    String mpiVersion,
    String system,
    int cores,
    int nranks,
    double copyAlone,
    double copyTogether,
    int runs,
    boolean bound,
    List<CaseResult> results) {
  public CollectivesReport {
    results = List.copyOf(results);
  }
}
