package io.weft.testgpus;

import java.util.Locale;

/**
 * A figure that was measured on a GPU beside what it has to reach. On doubles it is neither reached
 * nor missed: they have no speed.
 *
 * @param what is measured, as a reader of the results needs it
 * @param figure in the unit
 * @param goal in the unit
 * @param unit such as % or us
 * @param isMost whether the goal is the most that the figure may be; else it is the least
 */
public record Goal(String what, double figure, double goal, String unit, boolean isMost) {
  /** A figure that may not be smaller. */
  public static Goal least(String what, double figure, double goal, String unit) {
    return new Goal(what, figure, goal, unit, false);
  }

  /** A figure that may not be larger. */
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
        TestMachine.isReal() ? verdict : "not judged on doubles");
  }

  /** An object of the results; what was not judged is null. */
  public String json() {
    return String.format(
        Locale.ROOT,
        "{\"what\": \"%s\", \"figure\": %.3f, \"unit\": \"%s\", \"%s\": %.0f, \"reached\": %s}",
        what,
        figure,
        unit,
        isMost ? "most" : "least",
        goal,
        TestMachine.isReal() ? "" + isReached() : "null");
  }
}
