package io.weft.examples.train;

import io.weft.examples.measure.MeasureOptions;
import io.weft.examples.side.WorkFolder;
import io.weft.examples.tables.TableSet;
import io.weft.examples.terminal.Progress;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** Parses {@code weft train}. */
@Command(
    name = "train",
    mixinStandardHelpOptions = true,
    sortOptions = false,
    description = {
      "Trains a classifier on tables of TPC-H, on two ranks inside Spark. The ranks get their rows"
          + " by a Weft feed and by Spark's shuffle and Parquet files, in alternating runs.",
      "Shows times, bytes copied and accuracy, and draws the loss. Needs about 8 GB of memory. The"
          + " first run fetches 115 MB of native code from Maven Central."
    })
public final class TrainCommand implements Callable<Integer> {
  @Option(
      names = "--scale",
      defaultValue = "0.1",
      paramLabel = "FACTOR",
      description = "TPC-H scale factor; 1 is 1.5 million orders. Default: ${DEFAULT-VALUE}")
  private double scale;

  @Mixin private TableSet.FolderOption data;

  @Option(
      names = "--hidden",
      split = ",",
      defaultValue = "128,64",
      paramLabel = "UNITS",
      description = "Units of the hidden layers. Default: ${DEFAULT-VALUE}")
  private List<Integer> hidden;

  @Option(
      names = "--epochs",
      defaultValue = "6",
      paramLabel = "N",
      description = "Number of passes over all rows. Default: ${DEFAULT-VALUE}")
  private int epochs;

  @Option(
      names = "--batch",
      defaultValue = "256",
      paramLabel = "ROWS",
      description = "Rows of a rank's batch. Default: ${DEFAULT-VALUE}")
  private int batchRows;

  @Option(
      names = "--rate",
      defaultValue = "0.002",
      paramLabel = "RATE",
      description = "Learning rate of Adam. Default: ${DEFAULT-VALUE}")
  private double learningRate;

  @Option(
      names = "--runs",
      defaultValue = "3",
      paramLabel = "N",
      description =
          "Trainings with each hand-off, alternating, after one warm-up of each; 0: the feed alone,"
              + " once. Default: ${DEFAULT-VALUE}")
  private int runs;

  @Option(
      names = "--out",
      defaultValue = "weft-train",
      paramLabel = "FOLDER",
      description = "Where the report and the picture go. Default: ${DEFAULT-VALUE}")
  private Path out;

  @Mixin private WorkFolder.KeepOption keep;

  @Override
  public Integer call() throws Exception {
    TrainRun.Options options =
        new TrainRun.Options(
            scale,
            data.folder(),
            hidden,
            epochs,
            batchRows,
            learningRate,
            runs,
            out.toAbsolutePath(),
            keep.keep());
    var unused = MeasureOptions.createFolder(options.out());
    Progress progress = Progress.toErrors();
    new TrainRun(options, ModelProvider.find(), progress, System.out).run();
    return 0;
  }
}
