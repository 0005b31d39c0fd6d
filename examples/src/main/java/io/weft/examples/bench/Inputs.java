package io.weft.examples.bench;

import io.weft.examples.jobs.ShuffleJob;
import io.weft.examples.jobs.WriteInput;
import io.weft.examples.side.Cleanup;
import io.weft.examples.side.SideLauncher;
import io.weft.examples.side.SideProcess;
import io.weft.examples.side.Sides;
import io.weft.examples.side.WorkFolder;
import io.weft.examples.terminal.Progress;
import io.weft.examples.tpch.TableWriter;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/** Writes what the workloads read, in a process that ends before anything is measured. */
final class Inputs {
  private static final String KEY = "k";

  private final WorkFolder work;
  private final SideLauncher launcher;
  private final Cleanup cleanup;
  private final Progress progress;

  Inputs(WorkFolder work, SideLauncher launcher, Cleanup cleanup, Progress progress) {
    this.work = work;
    this.launcher = launcher;
    this.cleanup = cleanup;
    this.progress = progress;
  }

  /** Writes the inputs of some workloads and returns what to measure. */
  List<Subject> shuffles(List<Workload> workloads, double factor)
      throws IOException, InterruptedException {
    progress.step("writing the workloads' inputs");
    List<Subject> subjects = new ArrayList<>();
    try (SideProcess writer = cleanup.add(launcher.start(Sides.writer()))) {
      for (Workload workload : workloads) {
        progress.detail("writing the input of " + workload.title());
        subjects.add(subject(writer, workload, factor));
      }
    }
    return subjects;
  }

  private Subject subject(SideProcess writer, Workload workload, double factor)
      throws IOException, InterruptedException {
    String folder = work.folder("inputs").resolve(workload.id()).toString();
    Optional<WriteInput> input = workload.input(factor, folder);
    long rows = workload.rows(factor);
    long dataBytes =
        input.isPresent() ? writer.call(input.get()) : rows * workload.computedRowBytes();
    ShuffleJob job = new ShuffleJob(workload.source(factor, folder), workload.partitions(), KEY);
    return Subject.shuffle(workload, job, rows, dataBytes);
  }

  /** Writes the tables of TPC-H and returns their folder. */
  Path tables(double scale) throws IOException, InterruptedException {
    Path folder = work.folder("tpch");
    new TableWriter(launcher, cleanup, progress).write(folder, scale);
    return folder;
  }
}
