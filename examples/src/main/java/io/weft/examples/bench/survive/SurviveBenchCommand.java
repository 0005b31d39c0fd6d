package io.weft.examples.bench.survive;

import io.weft.examples.measure.MeasureOptions;
import io.weft.examples.side.WorkFolder;
import java.util.List;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** Parses {@code weft bench survive}. */
@Command(
    name = "survive",
    mixinStandardHelpOptions = true,
    sortOptions = false,
    description = {
      "Measures the time that a job loses when one of its two executors is killed (kill -9): with"
          + " Spark's sort shuffle, and with Weft, without and with adoption and copies.",
      "The job has three stages. Its tasks mostly wait, so that its length depends little on the"
          + " machine. An undisturbed job follows each warm-up; its CPU time shows what copies cost.",
      "With --quick it takes about six minutes, else 40. Writes a table, a chart, JSON and"
          + " Markdown."
    })
public final class SurviveBenchCommand implements Callable<Integer> {
  @Option(
      names = "--seconds",
      paramLabel = "N",
      description = "Length of the job. Default: 120, or 10 with --quick")
  private Integer seconds;

  @Option(
      names = "--rows",
      defaultValue = "1000000",
      paramLabel = "N",
      description = "Rows in each of the two shuffles, 150 bytes each. Default: ${DEFAULT-VALUE}")
  private long rows;

  @Option(
      names = "--deaths",
      split = ",",
      defaultValue = "10,50,90",
      paramLabel = "PERCENT",
      description =
          "When the executor is killed, by the tasks that have ended. Default: ${DEFAULT-VALUE}")
  private List<Integer> deaths;

  @Option(
      names = "--undisturbed",
      defaultValue = "1",
      paramLabel = "N",
      description =
          "Runs without a death, on each side; more of them compare CPU time better. Default:"
              + " ${DEFAULT-VALUE}")
  private int undisturbed;

  @Option(
      names = "--sides",
      split = ",",
      defaultValue = "SPARK,WEFT,ADOPT,SURVIVE",
      paramLabel = "SIDE",
      description = "Of ${COMPLETION-CANDIDATES}. Default: all")
  private List<SurviveSide> sides;

  @Mixin private MeasureOptions measure;

  @Mixin private WorkFolder.KeepOption keep;

  @Override
  public Integer call() throws Exception {
    int length = seconds != null ? seconds : measure.quick() ? 10 : 120;
    SurviveBench.Options options =
        new SurviveBench.Options(
            length, rows, deaths, sides, undisturbed, measure.runs(1, 1), keep.keep());
    return measure.report(
        SurviveReport.class, progress -> new SurviveBench(options, progress).run());
  }
}
