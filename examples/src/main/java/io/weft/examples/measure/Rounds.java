package io.weft.examples.measure;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.IntPredicate;

/**
 * Measures sides in alternating order: every side runs once in each round. The side that begins and
 * the side that precedes another one change from round to round, so that a drift of the machine,
 * and the leftovers of a side, affect all sides alike. For one thread.
 *
 * @param warmUps rounds before the rounds that count, 0 or more
 * @param runs rounds that count, 1 or more
 */
public record Rounds(int warmUps, int runs) {
  public Rounds {
    if (warmUps < 0) {
      throw new IllegalArgumentException("warm-ups cannot be negative: " + warmUps);
    }
    requireRuns(runs);
  }

  /**
   * Checks a number of runs.
   *
   * @throws IllegalArgumentException if it is less than 1
   */
  public static void requireRuns(int runs) {
    if (runs < 1) {
      throw new IllegalArgumentException("at least one run is needed, not " + runs);
    }
  }

  /** One run of a side. */
  @FunctionalInterface
  public interface Turn<S> {
    /**
     * Runs the side.
     *
     * @param run from 0; negative in a warm-up round
     */
    void run(S side, int run) throws IOException, InterruptedException;
  }

  /**
   * The order of the sides in a round. Two rounds that follow each other reverse the order, and the
   * next two begin one side later: three sides take all six orders in six rounds.
   */
  public static <S> List<S> order(List<S> sides, int round) {
    List<S> order = new ArrayList<>(sides);
    Collections.rotate(order, Math.floorDiv(round, 2));
    if (Math.floorMod(round, 2) == 1) {
      Collections.reverse(order);
    }
    return order;
  }

  /** Runs all sides in all rounds. */
  public <S> void run(List<S> sides, Turn<S> turn) throws IOException, InterruptedException {
    runWhile(sides, run -> true, turn);
  }

  /**
   * Runs all sides in all rounds, but ends early.
   *
   * @param more says before each round, by its number, whether to go on
   */
  public <S> void runWhile(List<S> sides, IntPredicate more, Turn<S> turn)
      throws IOException, InterruptedException {
    for (int run = -warmUps; run < runs && more.test(run); run++) {
      for (S side : order(sides, run)) {
        turn.run(side, run);
      }
    }
  }

  /** Measures contestants with different names and returns their figures in the given order. */
  public List<SideFigures> measure(List<Contestant> sides)
      throws IOException, InterruptedException {
    Map<String, List<Cost>> costs = new LinkedHashMap<>();
    sides.forEach(side -> costs.put(side.name(), new ArrayList<>()));
    run(
        sides,
        (side, run) -> {
          Cost cost = side.run().once();
          if (run >= 0) {
            costs.get(side.name()).add(cost);
          }
        });
    return sides.stream().map(side -> SideFigures.of(side.name(), costs.get(side.name()))).toList();
  }

  /**
   * The cost of one run.
   *
   * @param seconds elapsed
   * @param cpuSeconds of all processes of the side and all their threads
   */
  public record Cost(double seconds, double cpuSeconds) {}

  /**
   * A side that is ready to run again and again.
   *
   * @param name for tables
   */
  public record Contestant(String name, Run run) {
    /** One run. */
    @FunctionalInterface
    public interface Run {
      /** Runs once and returns the cost. */
      Cost once() throws IOException, InterruptedException;
    }
  }

  /**
   * The figures of one side.
   *
   * @param side its name
   * @param seconds by run
   * @param cpuSeconds of all its processes, by run
   */
  public record SideFigures(String side, Spread seconds, Spread cpuSeconds) {
    static SideFigures of(String side, List<Cost> costs) {
      return new SideFigures(
          side,
          new Spread(costs.stream().map(Cost::seconds).toList()),
          new Spread(costs.stream().map(Cost::cpuSeconds).toList()));
    }
  }
}
