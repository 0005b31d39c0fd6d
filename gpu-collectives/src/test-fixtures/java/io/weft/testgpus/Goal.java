package io.weft.testgpus;

import java.util.Locale;

/**
 * A measured figure of a GPU and its goal. On doubles it is not judged, because they have no speed.
 *
 * @param what the measurement, for a reader of the results
 * @param figure the measured value in the unit
 * @param goal the goal in the unit
 * @param unit such as % or us
 * @param isMost whether the goal is a maximum; else it is a minimum
 */
public record Goal(String what, double figure, double goal, String unit, boolean isMost) {
  /** A figure with a minimum. */
  public static Goal least(String what, double figure, double goal, String unit) {
    return new Goal(what, figure, goal, unit, false);
  }

  /** A figure with a maximum. */
  public static Goal most(String what, double figure, double goal, String unit) {
    return new Goal(what, figure, goal, unit, true);
  }

  private boolean isReached() {
    return isMost ? figure <= goal : figure >= goal;
  }

  /** A line of the table. */
  public String line() {
    String verdict = isReached() ? "reached" : "NOT REACHED";
    return String.format(
        Locale.ROOT,
        "goal: %s: %.1f %s, at %s %.0f %s: %s",
        what,
        figure,
        unit,
        isMost ? "most" : "least",
        goal,
        unit,
        TestMachine.hasSpeed() ? verdict : "not judged on doubles");
  }

  /** A JSON object of the results; the verdict is null if it was not judged. */
  public String json() {
    return String.format(
        Locale.ROOT,
        "{\"what\": \"%s\", \"figure\": %.3f, \"unit\": \"%s\", \"%s\": %.0f, \"reached\": %s}",
        what,
        figure,
        unit,
        isMost ? "most" : "least",
        goal,
        TestMachine.hasSpeed() ? "" + isReached() : "null");
  }
}
