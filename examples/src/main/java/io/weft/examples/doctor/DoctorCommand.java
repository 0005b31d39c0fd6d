package io.weft.examples.doctor;

import io.weft.device.probe.Capabilities;
import io.weft.device.probe.CapabilityProbe;
import io.weft.device.probe.ProbeOptions;
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

  @Override
  public Integer call() {
    Capabilities capabilities =
        folder == null
            ? CapabilityProbe.thisMachine()
            : CapabilityProbe.run(ProbeOptions.defaults().withSharedFolder(folder));
    Examination examination =
        new Examination(capabilities, Optional.ofNullable(folder), localFolders);
    spec.commandLine().getOut().print(examination.toText());
    spec.commandLine().getOut().flush();
    return 0;
  }
}
