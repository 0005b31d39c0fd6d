package io.weft.examples.ranks;

import io.weft.examples.side.SideTask;
import java.io.Serializable;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.SparkSession;

/**
 * Runs the programs on ranks and in Spark, and compares the results.
 *
 * @param ranks of a barrier stage
 */
public record RanksCheck(int ranks, HaloExchange halo, SampleSort sort)
    implements SideTask<RanksCheck.Outcomes> {
  private static final String ENABLED = "spark.weft.enabled";

  /**
   * Creates a check.
   *
   * @param rows to sort
   * @param distinct the values of the rows are below this number
   */
  public static RanksCheck of(int ranks, int cells, int steps, long rows, long distinct) {
    return new RanksCheck(ranks, new HaloExchange(cells, steps), new SampleSort(rows, distinct));
  }

  /** The outcomes of all programs. */
  public record Outcomes(List<Outcome> programs) implements Serializable {}

  /**
   * The outcome of a program.
   *
   * @param elements of the result
   * @param equal whether Spark computed the same
   * @param seconds on the ranks, and by Spark
   */
  public record Outcome(
      String program, long elements, boolean equal, double seconds, double sparkSeconds)
      implements Serializable {}

  private interface Program {
    long[] run(SparkSession session);
  }

  @Override
  public Outcomes run(SparkSession session) {
    return new Outcomes(
        List.of(
            compare("halo exchange", session, s -> halo.run(s, ranks), halo::bySpark),
            compare("sample sort", session, s -> sort.run(s, ranks), sort::bySpark)));
  }

  private static Outcome compare(
      String name, SparkSession session, Program onRanks, Program bySpark) {
    long[][] results = new long[2][];
    double seconds = seconds(() -> results[0] = onRanks.run(session));
    // Spark's result must not depend on Weft's shuffle.
    session.conf().set(ENABLED, "false");
    try {
      double sparkSeconds = seconds(() -> results[1] = bySpark.run(session));
      return new Outcome(
          name, results[0].length, Arrays.equals(results[0], results[1]), seconds, sparkSeconds);
    } finally {
      session.conf().set(ENABLED, "true");
    }
  }

  private static double seconds(Runnable work) {
    long start = System.nanoTime();
    work.run();
    return (System.nanoTime() - start) / 1e9;
  }
}
