package io.weft.examples.etl;

import io.weft.device.UnavailableLibraryException;
import io.weft.device.cuda.CudaException;
import io.weft.device.cuda.CudaLibrary;
import io.weft.device.probe.ProbeOptions;
import io.weft.examples.side.Cleanup;
import io.weft.examples.side.SideLauncher;
import io.weft.examples.side.SideOptions;
import io.weft.examples.side.SideProcess;
import io.weft.examples.side.WorkFolder;
import io.weft.examples.terminal.Progress;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** Parses and runs {@code weft gpu-train}. */
@Command(
    name = "gpu-train",
    mixinStandardHelpOptions = true,
    sortOptions = false,
    description = {
      "Scans Parquet, makes features on the GPU with a kernel of its own, through JCuda, and trains"
          + " a classifier on two ranks inside Spark.",
      "Compares the features with those of Spark SQL. Needs a GPU and its driver."
    })
public final class GpuTrainingCommand implements Callable<Integer> {
  private static final int RANKS = 2;
  private static final int FAILED = 1;

  @Option(
      names = "--rows",
      defaultValue = "500000",
      paramLabel = "N",
      description = "Rows of the table. Default: ${DEFAULT-VALUE}")
  private long rows;

  @Option(
      names = "--batch-rows",
      defaultValue = "512",
      paramLabel = "N",
      description = "Rows of each rank's batches. Default: ${DEFAULT-VALUE}")
  private int batchRows;

  @Option(
      names = "--epochs",
      defaultValue = "3",
      paramLabel = "N",
      description = "Passes over the rows. Default: ${DEFAULT-VALUE}")
  private int epochs;

  @Override
  public Integer call() throws Exception {
    Optional<String> missing = missing(ProbeOptions.defaults());
    if (missing.isPresent()) {
      System.err.println(
          "weft: gpu-train needs a GPU (\"weft doctor --gpu\" says more): " + missing.get());
      return FAILED;
    }
    Progress progress = Progress.toErrors();
    GpuTraining.Outcome outcome;
    try (Cleanup cleanup = new Cleanup()) {
      progress.step("starting a cluster of two executors");
      WorkFolder work = cleanup.add(WorkFolder.create("weft-gpu-train-", false));
      SideProcess side =
          cleanup.add(SideLauncher.create(work).start(SideOptions.weft("auto", Map.of())));
      progress.step("training");
      String folder = work.folder("training").toString();
      outcome = side.call(new GpuTraining(folder, rows, RANKS, batchRows, epochs));
      progress.step("stopping the cluster");
    }
    progress.clear();
    System.out.printf(
        Locale.ROOT,
        "%,d rows of features by the kernel, %s; %,d rows trained in %.2f s, loss %.4f to %.4f%n",
        outcome.rows(),
        outcome.different() == 0
            ? "equal to Spark's"
            : "%,d DIFFERENT from Spark's".formatted(outcome.different()),
        outcome.trained(),
        outcome.seconds(),
        outcome.firstLoss(),
        outcome.lastLoss());
    return outcome.different() == 0 ? 0 : FAILED;
  }

  /** Why this machine cannot run it; empty if it can. */
  static Optional<String> missing(ProbeOptions options) {
    try {
      CudaLibrary unused = CudaLibrary.load(options);
      return Optional.empty();
    } catch (UnavailableLibraryException | CudaException e) {
      return Optional.of(e.getMessage());
    }
  }
}
