package io.weft.examples.doctor;

import io.weft.collectives.nccl.GpuReport;
import io.weft.crosshost.gpu.GpuSearch;
import io.weft.device.probe.Capabilities;
import io.weft.device.probe.CapabilityProbe;
import io.weft.device.probe.ProbeOptions;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.Callable;
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
      "What this machine can do, with the reason for every yes and no, and what Weft would do here."
    })
public final class DoctorCommand implements Callable<Integer> {
  @Spec private CommandSpec spec;

  @Option(
      names = "--folder",
      paramLabel = "FOLDER",
      description = "Where segments would go, as spark.weft.memory.folder says. Default: /dev/shm")
  private Path folder;

  @Option(
      names = "--local-folders",
      split = ",",
      defaultValue = "${sys:java.io.tmpdir}",
      paramLabel = "FOLDER",
      description = "What spark.local.dir says. Default: ${DEFAULT-VALUE}")
  private List<Path> localFolders;

  @Option(
      names = "--gpu",
      description = {
        "Also call the NVIDIA driver and NCCL and print what they say.",
        "A driver that is broken can end or hang this command."
      })
  private boolean gpu;

  @Option(
      names = "--nccl",
      paramLabel = "LIBRARY",
      description = "The libnccl.so.2 to take. Default: the first that is found")
  private Path nccl;

  @Override
  public Integer call() {
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
    if (gpu) {
      out.print("\nThe driver and NCCL say\n");
      GpuReport.lines(options).forEach(line -> out.print("  " + line + "\n"));
      out.print("  an executor here has " + GpuSearch.find(capabilities, options, "") + "\n");
    }
    out.flush();
    return 0;
  }
}
