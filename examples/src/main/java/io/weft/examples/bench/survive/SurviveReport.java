package io.weft.examples.bench.survive;

import io.weft.examples.measure.Report;
import io.weft.examples.measure.Spread;
import io.weft.examples.measure.Svg;
import io.weft.examples.measure.Svg.Anchor;
import io.weft.examples.terminal.TextTable;
import io.weft.examples.terminal.TextTable.Align;
import io.weft.examples.terminal.Units;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Optional;

/**
 * The report of {@code weft bench survive}.
 *
 * @param seconds length of the job, as asked for
 * @param rows of each shuffle
 * @param undisturbed runs without a death
 * @param runs with each death
 * @param sides in order
 */
public record SurviveReport(
    int seconds, long rows, int undisturbed, int runs, List<SideResult> sides) implements Report {
  private static final String TITLE = "What the death of an executor costs";

  private static final int WIDTH = 920;
  private static final int LEFT = 210;
  private static final int RIGHT = 180;
  private static final int BAR = 16;
  private static final int STEP = 19;
  private static final int GAP = 20;
  private static final String INK = "#1f2933";
  private static final String QUIET = "#66727f";
  private static final List<String> COLORS = List.of("#a9b4be", "#e0a030", "#0f766e", "#5b6ee1");

  /**
   * The result of a side.
   *
   * @param undisturbed seconds of the job without a death
   * @param taskCpuSeconds of its tasks
   * @param cpuSeconds of the executors' processes in it
   * @param sum of the job's rows
   */
  public record SideResult(
      SurviveSide side,
      Spread undisturbed,
      Spread taskCpuSeconds,
      Spread cpuSeconds,
      String sum,
      List<Death> deaths) {}

  /**
   * The result of a death.
   *
   * @param percent of the job's tasks after which the executor was killed
   * @param lost seconds that the job took longer
   * @param noticed seconds from the death until the driver removed the executor; NaN if it did not
   *     during the job
   * @param replaced seconds from the death until the driver added the next executor; NaN if it did
   *     not during the job
   * @param repeated the most tasks that ran again after their success
   * @param late runs whose executor died after the job's last task; they are in no other number
   * @param equal whether the rows were those of the undisturbed job
   */
  public record Death(
      int percent,
      Spread lost,
      Spread noticed,
      Spread replaced,
      int repeated,
      int late,
      boolean equal) {
    /** Reports of earlier versions have no times of the notice and of the replacement. */
    public Death {
      noticed = noticed == null ? Spread.of(Double.NaN) : noticed;
      replaced = replaced == null ? Spread.of(Double.NaN) : replaced;
    }
  }

  @Override
  public String fileName() {
    return "survive";
  }

  @Override
  public Text text() {
    TextTable jobs =
        new TextTable()
            .column("shuffle by", Align.LEFT)
            .columns(Align.RIGHT, "undisturbed s", "task CPU s", "executor CPU s");
    TextTable deaths =
        new TextTable()
            .column("shuffle by", Align.LEFT)
            .columns(Align.RIGHT, "killed after", "s lost", "of the undisturbed job")
            .columns(Align.RIGHT, "noticed after s", "replaced after s", "tasks repeated");
    for (SideResult side : sides) {
      jobs.row(
          side.side().label(),
          Units.seconds(side.undisturbed().median()),
          Units.seconds(side.taskCpuSeconds().median()),
          Units.seconds(side.cpuSeconds().median()));
      for (Death death : side.deaths()) {
        deaths.row(row(side, death));
      }
    }
    return new Text("", List.of(jobs, deaths), notes());
  }

  private static String[] row(SideResult side, Death death) {
    double undisturbed = side.undisturbed().median();
    return new String[] {
      side.side().label(),
      death.percent() + " %",
      decimal(death.lost().median(), 1),
      decimal((undisturbed + death.lost().median()) / undisturbed, 2),
      decimal(death.noticed().median(), 2),
      decimal(death.replaced().median(), 1),
      Integer.toString(death.repeated())
    };
  }

  private List<String> notes() {
    List<String> notes = new ArrayList<>();
    notes.add(
        ("Medians of %d undisturbed runs, and of %d with each death, of a job of %d s with %,d rows"
                + " in each of two shuffles. The rows were %s.")
            .formatted(undisturbed, runs, seconds, rows, passed() ? "equal" : "NOT EQUAL"));
    int late = sides.stream().flatMap(side -> side.deaths().stream()).mapToInt(Death::late).sum();
    if (late > 0) {
      notes.add(
          late
              + " more runs do not count: their executor died after the job's last task. They were"
              + " repeated.");
    }
    return List.copyOf(notes);
  }

  private static String decimal(double value, int digits) {
    return Double.isNaN(value) ? "-" : String.format(Locale.ROOT, "%." + digits + "f", value);
  }

  /** Whether all jobs of all sides had the same rows. */
  @Override
  public boolean passed() {
    return sides.stream().map(SideResult::sum).distinct().count() <= 1
        && sides.stream().flatMap(side -> side.deaths().stream()).allMatch(Death::equal);
  }

  @Override
  public Optional<String> chart() {
    return sides.isEmpty() ? Optional.empty() : Optional.of(svg());
  }

  private String svg() {
    Svg svg = new Svg(WIDTH);
    svg.text(24, 36, TITLE, 20, INK, Anchor.START, true);
    String subtitle =
        "seconds lost by a job of %d s when one of two executors is killed · shorter is better"
            .formatted(seconds);
    svg.text(24, 58, subtitle, 12, QUIET, Anchor.START, false);
    double longest =
        sides.stream()
            .flatMap(side -> side.deaths().stream())
            .mapToDouble(death -> death.lost().median())
            .reduce(0.1, Math::max);
    double y = 84;
    for (int death = 0; death < sides.get(0).deaths().size(); death++) {
      String when = "killed after " + sides.get(0).deaths().get(death).percent() + " %";
      svg.text(24, y + BAR - 4, when, 13, INK, Anchor.START, true);
      for (int i = 0; i < sides.size(); i++) {
        bar(svg, sides.get(i), sides.get(i).deaths().get(death), i, y, longest);
        y += STEP;
      }
      y += GAP;
    }
    return svg.toDocument((int) y, TITLE);
  }

  private static void bar(
      Svg svg, SideResult side, Death death, int number, double y, double longest) {
    double lost = Math.max(0, death.lost().median());
    double width = Math.max(1, lost * (WIDTH - LEFT - RIGHT - 60) / longest);
    double x = LEFT + 60;
    svg.text(x - 8, y + BAR - 4, side.side().label(), 12, INK, Anchor.END, false);
    svg.rectangle(x, y, width, BAR, 2.5, COLORS.get(number % COLORS.size()));
    String text = decimal(death.lost().median(), 1) + " s · " + death.repeated() + " tasks again";
    svg.text(x + width + 8, y + BAR - 4, text, 12, INK, Anchor.START, false);
  }
}
