package io.weft.examples.doctor;

import io.weft.collectives.host.HostOptions;
import io.weft.collectives.nccl.GpuReport;
import io.weft.device.probe.Capabilities;
import io.weft.device.probe.CapabilityProbe;
import io.weft.device.probe.Choice;
import io.weft.device.probe.ProbeOptions;
import io.weft.examples.terminal.Units;
import io.weft.shuffle.MemoryBudget;
import io.weft.shuffle.store.HostRoot;
import io.weft.shuffle.store.Leftover;
import io.weft.spark.config.MemorySettings;
import io.weft.spark.config.SpillMemory;
import io.weft.spark.config.SurviveSettings;
import io.weft.spark.config.WeftVersion;
import io.weft.spark.runtime.CopyFolder;
import io.weft.transfers.gpu.GpuSearch;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.Callable;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.SparkConf;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** Parses {@code weft doctor}. */
@Command(
    name = "doctor",
    mixinStandardHelpOptions = true,
    sortOptions = false,
    description = {
      "Shows what this machine can do, with the reason for every yes and no, and what Weft would"
          + " do here."
    })
public final class DoctorCommand implements Callable<Integer> {
  @Spec private CommandSpec spec;

  @Option(
      names = "--folder",
      paramLabel = "FOLDER",
      description = "The folder of segments, like spark.weft.memory.folder. Default: /dev/shm")
  private Path folder;

  @Option(
      names = "--local-folders",
      split = ",",
      defaultValue = "${sys:java.io.tmpdir}",
      paramLabel = "FOLDER",
      description = "The local folders, like spark.local.dir. Default: ${DEFAULT-VALUE}")
  private List<Path> localFolders;

  @Option(
      names = "--gpu",
      description = {
        "Also call the NVIDIA driver and NCCL and print their answers.",
        "A broken driver can end this command or make it hang."
      })
  private boolean gpu;

  @Option(
      names = "--nccl",
      paramLabel = "LIBRARY",
      description = "The libnccl.so.2 to use. Default: the first one found")
  private Path nccl;

  @Option(
      names = "--sweep",
      description = {
        "Only delete what killed executors of this user left in the folders, and print it.",
        "Folders of living executors, and folders that they read, stay."
      })
  private boolean sweep;

  @Option(
      names = "--survive-path",
      paramLabel = "PATH",
      description = {
        "With --sweep: also delete copies of map outputs of dead applications of this user here,"
            + " like spark.weft.survive.path"
      })
  private String survivePath;

  @Option(
      names = "--survive-age",
      defaultValue = "60",
      paramLabel = "MINUTES",
      description = {
        "An application is dead if its driver did not renew its mark for this time, like"
            + " spark.weft.survive.sweepAge. Default: ${DEFAULT-VALUE}"
      })
  private long surviveMinutes;

  @Override
  public Integer call() throws IOException {
    checkOptions();
    if (sweep) {
      return sweep();
    }
    ProbeOptions options = ProbeOptions.defaults();
    options = folder == null ? options : options.withSharedFolder(folder);
    options = nccl == null ? options : options.withNcclLibrary(nccl);
    Capabilities capabilities =
        folder == null && nccl == null
            ? CapabilityProbe.thisMachine()
            : CapabilityProbe.run(options);
    Examination examination =
        new Examination(capabilities, Optional.ofNullable(folder), localFolders);
    PrintWriter out = spec.commandLine().getOut();
    out.print(examination.toText());
    HostWarnings.ofThisProcess(options)
        .lines()
        .forEach(line -> out.print("warning: " + line + "\n"));
    if (gpu) {
      out.print("\nThe driver and NCCL say\n");
      GpuReport.lines(options).forEach(line -> out.print("  " + line + "\n"));
      out.print("  an executor here has " + GpuSearch.find(capabilities, options, "") + "\n");
    }
    out.flush();
    return 0;
  }

  /** With a negative age, copies of living applications would be deleted. */
  private void checkOptions() {
    if (surviveMinutes < 1) {
      throw new IllegalArgumentException(
          "--survive-age has to be at least 1 minute, not " + surviveMinutes);
    }
    if (survivePath != null) {
      if (!sweep) {
        throw new IllegalArgumentException("--survive-path is only for --sweep");
      }
      if (survivePath.isBlank()) {
        throw new IllegalArgumentException("--survive-path has to name a folder");
      }
      SurviveSettings.PATH.parse(survivePath);
    }
    if (nccl != null && !Files.isRegularFile(nccl)) {
      throw new IllegalArgumentException("--nccl has to name a file, but there is no " + nccl);
    }
  }

  private int sweep() throws IOException {
    PrintWriter out = spec.commandLine().getOut();
    List<Path> roots = new ArrayList<>(localFolders);
    roots.add(0, folder == null ? ProbeOptions.defaults().sharedFolder() : folder);
    long bytes = 0;
    for (Path root : roots) {
      for (Leftover removed : Leftover.sweep(root)) {
        out.print("removed " + removed + "\n");
        bytes += removed.bytes();
      }
    }
    out.print("%s removed from %s\n".formatted(Units.bytes(bytes), roots));
    if (survivePath != null) {
      CopyFolder.sweep(survivePath, new Configuration(), Duration.ofMinutes(surviveMinutes))
          .forEach(copies -> out.print("removed " + copies + "\n"));
    }
    out.flush();
    return 0;
  }

  /**
   * Describes a machine.
   *
   * @param capabilities of the machine
   * @param folder of segments that the user wants; empty for the automatic choice
   * @param localFolders the fallback for segments
   */
  record Examination(Capabilities capabilities, Optional<Path> folder, List<Path> localFolders) {
    private static final String INDENT = "  ";

    private static final String OTHERS_BLOCKS =
        "shm from this host, tcp from others; never nccl, because blocks are in host memory";

    String toText() {
      List<String> lines = new ArrayList<>();
      lines.add(
          "Weft %s, Java %s, %s %s on %s"
              .formatted(
                  WeftVersion.current(),
                  System.getProperty("java.version"),
                  System.getProperty("os.name"),
                  System.getProperty("os.version"),
                  System.getProperty("os.arch")));
      lines.add("");
      lines.add("This machine has");
      capabilities.lines().forEach(line -> lines.add(INDENT + line));
      lines.add("");
      lines.add("Weft would do here");
      lines.add(INDENT + "shuffle blocks: " + blocks());
      lines.add(INDENT + "where spark.io.encryption.enabled: " + encrypted());
      lines.add(INDENT + "blocks of other executors: " + OTHERS_BLOCKS);
      lines.add(INDENT + "arrays between GPUs of executors: " + arrays());
      lines.add(
          INDENT + "communicators without Spark: in " + HostOptions.on(capabilities).folder());
      capabilities.choices().forEach(line -> lines.add(INDENT + line));
      return String.join("\n", lines) + "\n";
    }

    /** Returns the sizes of the default settings. */
    private static String encrypted() {
      SparkConf defaults = new SparkConf(false);
      return "up to %s in each executor unless %s says otherwise"
          .formatted(
              SpillMemory.of(defaults).describe(MemorySettings.segmentBytes(defaults)),
              MemorySettings.SPILL_PRIVATE_MEMORY.key());
    }

    /** Describes the part of this machine in a choice that depends on both ends. */
    private String arrays() {
      Choice choice = capabilities.betweenGpus();
      return choice.isPreferred()
          ? "nccl, with executors that have the same version and another GPU; else shm or tcp (%s)"
              .formatted(choice.reason())
          : "shm on this host, tcp to others, through host memory; no nccl (%s)"
              .formatted(choice.reason());
    }

    /** Chooses as an executor does with the default settings. */
    private String blocks() {
      long least =
          MemorySettings.SEGMENT_SIZE.defaultValue() + MemorySettings.MARGIN.defaultValue();
      try {
        HostRoot root = HostRoot.choose(capabilities, folder.orElse(null), localFolders, least);
        return "in %s, up to %s for each executor unless spark.weft.memory.size says otherwise%s%s"
            .formatted(
                root.userFolder(),
                Units.bytes(
                    MemoryBudget.automaticBytes(
                        root.path(), MemorySettings.HOST_FRACTION.defaultValue())),
                root.sharedMemory() ? "" : ", which is not in memory",
                root.fallbackReason().map(reason -> "; because " + reason).orElse(""));
      } catch (IOException e) {
        return "Weft cannot start: " + e.getMessage();
      }
    }
  }
}
