package io.weft.device;

import io.weft.collectives.Bootstrap;
import io.weft.collectives.Communicator;
import io.weft.collectives.CommunicatorOptions;
import io.weft.collectives.bootstrap.ThreadBootstrap;
import io.weft.collectives.host.HostCommunicators;
import io.weft.collectives.host.HostOptions;
import io.weft.collectives.nccl.GpuReport;
import io.weft.collectives.nccl.NcclLibrary;
import io.weft.device.cuda.CudaDevice;
import io.weft.device.cuda.CudaLibrary;
import io.weft.device.cuda.CudaModule;
import io.weft.device.probe.CapabilityProbe;
import io.weft.device.probe.ProbeOptions;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/** A separate process that loads a library, or none, because libraries stay loaded. */
final class GpuLibraryProcess {
  private static final Duration TIMEOUT = Duration.ofSeconds(120);

  private GpuLibraryProcess() {}

  /**
   * Runs a process and returns its output.
   *
   * @param isWithJna whether JNA is on its class path
   * @param arguments the arguments of {@link #main}, after flags of the Java virtual machine
   */
  static String run(boolean isWithJna, List<String> flags, String... arguments) throws IOException {
    String classPath =
        Arrays.stream(
                System.getProperty(
                        "surefire.test.class.path", System.getProperty("java.class.path"))
                    .split(":"))
            .filter(entry -> isWithJna || !entry.contains("jna-"))
            .collect(Collectors.joining(":"));
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.addAll(List.of("-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"));
    command.addAll(flags);
    command.addAll(List.of("-cp", classPath, GpuLibraryProcess.class.getName()));
    command.addAll(List.of(arguments));
    ChildProcess.Outcome outcome = ChildProcess.run(command, TIMEOUT);
    if (!outcome.isWell()) {
      throw new AssertionError("the process failed: " + outcome);
    }
    return outcome.output();
  }

  /**
   * Takes "nccl LIBRARY", "cuda FOLDER", "both FOLDERS NCCL", "kernels FOLDER", "report ROOT" or
   * "none FOLDER".
   */
  public static void main(String[] args) throws Exception {
    ProbeOptions options = ProbeOptions.defaults();
    try {
      switch (args[0]) {
        case "nccl" -> {
          NcclLibrary library = NcclLibrary.load(options.withNcclLibrary(Path.of(args[1])));
          System.out.println(library + "; " + library.whyNoWindows().orElse("with windows"));
        }
        case "both" -> {
          System.out.println(
              CudaLibrary.load(options.withEnvironment(Map.of("LD_LIBRARY_PATH", args[1]))));
          System.out.println(NcclLibrary.load(options.withNcclLibrary(Path.of(args[2]))));
        }
        case "cuda" ->
            System.out.println(
                CudaLibrary.load(options.withEnvironment(Map.of("LD_LIBRARY_PATH", args[1]))));
        case "kernels" -> {
          CudaLibrary library =
              CudaLibrary.load(options.withEnvironment(Map.of("LD_LIBRARY_PATH", args[1])));
          try (CudaDevice device = library.open(0);
              CudaModule module = CudaModule.load(device, "partition")) {
            System.out.println("with " + module.kernel("weft_starts", 32));
          }
        }
        case "report" ->
            GpuReport.lines(options.withRoot(Path.of(args[1])).withEnvironment(Map.of()))
                .forEach(System.out::println);
        default -> withoutGpu(Path.of(args[1]));
      }
    } catch (UnavailableLibraryException e) {
      System.out.println("unavailable: " + e.getMessage());
    }
  }

  /** Does what a job without a GPU does. */
  private static void withoutGpu(Path folder) {
    CapabilityProbe.run(ProbeOptions.defaults()).lines().forEach(System.out::println);
    HostOptions options = HostOptions.defaults().withFolder(folder);
    try (Bootstrap bootstrap = ThreadBootstrap.open(1).get(0);
        Communicator communicator =
            new HostCommunicators(options).create(bootstrap, CommunicatorOptions.DEFAULT)) {
      communicator.barrier();
      System.out.println("rank " + communicator.rank() + " has ended");
    }
  }
}
