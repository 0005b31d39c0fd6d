package io.weft.examples.bench.collectives;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.weft.examples.measure.Report;
import io.weft.examples.measure.Spread;
import java.util.List;
import java.util.Optional;

/**
 * The report of {@code weft bench collectives}.
 *
 * @param when the time of the start, in ISO form
 * @param weftVersion of the project
 * @param javaVersion of the ranks
 * @param mpiVersion of OpenMPI; empty if it did not take part
 * @param system the operating system
 * @param cores of the machine
 * @param gangs in the order of their results
 * @param copyAlone bytes a second that one thread copies alone
 * @param runs that count
 * @param results by number of ranks, then operation, then size
 */
public record CollectivesReport(
    String when,
    String weftVersion,
    String javaVersion,
    String mpiVersion,
    String system,
    int cores,
    List<Gang> gangs,
    double copyAlone,
    int runs,
    List<CaseResult> results)
    implements Report {
  public CollectivesReport {
    gangs = List.copyOf(gangs);
    results = List.copyOf(results);
  }

  @Override
  public String fileName() {
    return "collectives";
  }

  @Override
  public Text text() {
    return new CollectivesTable(this).text();
  }

  @Override
  public Optional<String> chart() {
    return Optional.of(new CollectivesChart(this).toSvg());
  }

  /** Whether all elements were right. */
  @Override
  public boolean passed() {
    return errors() == 0;
  }

  /** Returns the number of wrong elements of all sides. */
  long errors() {
    return results.stream()
        .flatMap(result -> result.sides().stream())
        .mapToLong(CaseFigures::errors)
        .sum();
  }

  /** Adds sizes, bandwidths and how sides compare. */
  @Override
  public void addDerived(ObjectNode json) {
    for (int i = 0; i < results.size(); i++) {
      CaseResult result = results.get(i);
      ObjectNode node = (ObjectNode) json.path("results").path(i);
      ((ObjectNode) node.path("test")).put("bytes", result.test().bytes());
      for (int j = 0; j < result.sides().size(); j++) {
        CaseFigures side = result.sides().get(j);
        double seconds = side.seconds().median();
        ObjectNode figures = (ObjectNode) node.path("sides").path(j);
        figures.put("algbw", result.test().algorithmBandwidth(seconds));
        figures.put("busbw", result.test().busBandwidth(seconds));
        figures.put("partOfCopy", result.test().algorithmBandwidth(seconds) / copyAlone);
        result.timesFaster(side).ifPresent(times -> figures.put("timesFaster", times));
      }
    }
  }

  /**
   * A number of ranks that was measured.
   *
   * @param nranks processes on each side
   * @param copyTogether bytes a second that each thread copies when one thread for each rank copies
   * @param bound whether each rank had a processor of its own
   */
  public record Gang(int nranks, double copyTogether, boolean bound) {}

  /**
   * The result of one case.
   *
   * @param sides that support the operation, Weft first
   */
  public record CaseResult(CollectiveCase test, List<CaseFigures> sides) {
    public CaseResult {
      sides = List.copyOf(sides);
    }

    /** How many times faster than OpenMPI a side is; empty without OpenMPI. */
    public Optional<Double> timesFaster(CaseFigures side) {
      return sides.stream()
          .filter(other -> other.side().equals(MpiSide.NAME) && !other.side().equals(side.side()))
          .findFirst()
          .map(mpi -> mpi.seconds().median() / side.seconds().median());
    }
  }

  /**
   * The figures of one side in one case.
   *
   * @param side its name
   * @param seconds of one operation on the slowest rank, by block
   * @param cpuSeconds of one operation on all ranks and threads together, by block
   * @param errors number of wrong elements
   * @param algorithm that the side reports; empty if it reports none
   */
  public record CaseFigures(
      String side, Spread seconds, Spread cpuSeconds, long errors, String algorithm) {}
}
