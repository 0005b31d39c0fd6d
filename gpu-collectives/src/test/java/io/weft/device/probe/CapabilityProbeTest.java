package io.weft.device.probe;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.device.probe.CapabilityProbe.Versions;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.EnumMap;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class CapabilityProbeTest {
  private static final String DRIVER =
      "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build\n"
          + "GCC version:  gcc version 13.3.0\n";

  @TempDir Path root;

  private ProbeOptions options() {
    return ProbeOptions.defaults().withRoot(root).withEnvironment(Map.of());
  }

  private Capabilities probe() {
    return CapabilityProbe.run(options());
  }

  private void write(String path, String content) throws IOException {
    Path file = root.resolve(path.substring(1));
    Files.createDirectories(file.getParent());
    Files.writeString(file, content, StandardCharsets.ISO_8859_1);
  }

  private void writeDriver() throws IOException {
    write("/proc/driver/nvidia/version", DRIVER);
    write("/usr/lib/x86_64-linux-gnu/libcuda.so.1", "");
  }

  private void writeGpu(String bus) throws IOException {
    write(
        "/proc/driver/nvidia/gpus/" + bus + "/information",
        "Model: \t\t NVIDIA H100 80GB HBM3\nIRQ:   \t\t 18\n");
  }

  @Test
  void thisMachineHasAnAnswerWithAReasonForEverything() {
    Capabilities here = CapabilityProbe.run(ProbeOptions.defaults());
    assertThat(here.findings()).containsOnlyKeys(Capability.values());
    assertThat(here.findings().values())
        .allSatisfy(finding -> assertThat(finding.reason()).isNotBlank());
    assertThat(here.lines()).hasSize(Capability.values().length);
    assertThat(here.choices()).hasSize(4).allSatisfy(line -> assertThat(line).contains(": "));
  }

  @Test
  void emptyMachineHasNoGpuAndSaysWhy() {
    Capabilities empty = probe();
    assertThat(empty.has(Capability.CUDA_DRIVER)).isFalse();
    assertThat(empty.reason(Capability.CUDA_DRIVER)).contains("kernel module is not loaded");
    assertThat(empty.reason(Capability.CUDA_DEVICES)).startsWith("no driver: ");
    assertThat(empty.reason(Capability.PEER_ACCESS)).startsWith("no GPU: no driver: ");
    assertThat(empty.reason(Capability.NCCL)).contains("libnccl.so.2 is not in LD_LIBRARY_PATH");
    assertThat(empty.reason(Capability.RDMA)).contains("/sys/class/infiniband");
    assertThat(empty.reason(Capability.HUGE_PAGES)).contains("does not exist");
    assertThat(empty.choices())
        .anySatisfy(line -> assertThat(line).startsWith("data: stays on the host (cuda devices"));
  }

  @Test
  void sharedMemoryIsProvedByAMappedSegment() throws IOException {
    Capabilities disk = CapabilityProbe.run(options().withSharedFolder(root.resolve("absent")));
    assertThat(disk.reason(Capability.SHARED_MEMORY)).contains("does not exist");
    Path file = Files.createFile(root.resolve("file"));
    assertThat(CapabilityProbe.run(options().withSharedFolder(file)).has(Capability.SHARED_MEMORY))
        .isFalse();
    Path memory = Path.of("/dev/shm");
    if (Files.isWritable(memory) && Files.getFileStore(memory).type().equals("tmpfs")) {
      Path own = Files.createTempDirectory(memory, "weft-test-");
      Capabilities here = CapabilityProbe.run(options().withSharedFolder(own));
      assertThat(here.has(Capability.SHARED_MEMORY)).isTrue();
      assertThat(here.reason(Capability.SHARED_MEMORY)).contains("free in " + own + " (tmpfs)");
      assertThat(own).isEmptyDirectory();
      Files.delete(own);
    }
  }

  @ParameterizedTest
  @CsvSource({
    "always within_size [advise] never, false",
    "[always] within_size advise never, true",
    "always within_size advise [never], false"
  })
  void hugePagesAreReadFromTheKernel(String setting, boolean expected) throws IOException {
    write("/sys/kernel/mm/transparent_hugepage/shmem_enabled", setting + "\n");
    assertThat(probe().has(Capability.HUGE_PAGES)).isEqualTo(expected);
    assertThat(probe().reason(Capability.HUGE_PAGES)).contains(setting);
  }

  @Test
  void libraryWithoutFilesOfTheKernelModuleIsNamed() throws IOException {
    write("/usr/lib/wsl/lib/libcuda.so.1", "");
    assertThat(probe().has(Capability.CUDA_DRIVER)).isFalse();
    assertThat(probe().reason(Capability.CUDA_DRIVER))
        .contains("hidden, only " + root.resolve("usr/lib/wsl/lib/libcuda.so.1") + " knows");
  }

  @Test
  void driverWithoutItsLibraryIsNone() throws IOException {
    write("/proc/driver/nvidia/version", DRIVER);
    assertThat(probe().has(Capability.CUDA_DRIVER)).isFalse();
    assertThat(probe().reason(Capability.CUDA_DRIVER))
        .contains("driver 580.65.06, but libcuda.so.1 is not in LD_LIBRARY_PATH");
  }

  @Test
  void oldDriverAndOldNcclAreNone() throws IOException {
    write("/proc/driver/nvidia/version", DRIVER.replace("580.65.06", "470.256.02"));
    write("/usr/lib/x86_64-linux-gnu/libcuda.so.1", "");
    write("/usr/lib/libnccl.so.2", "NCCL version 2.12.12+cuda11.6");
    assertThat(probe().has(Capability.CUDA_DRIVER)).isFalse();
    assertThat(probe().reason(Capability.CUDA_DRIVER)).contains("470.256.02 is older than 525");
    assertThat(probe().has(Capability.NCCL)).isFalse();
    assertThat(probe().reason(Capability.NCCL)).endsWith(" is older than 2.19.3");
  }

  /** As pip installs it: for the active environment, the user, or all users. */
  @ParameterizedTest
  @CsvSource({
    "VIRTUAL_ENV, /opt/env, /opt/env/lib/python3.12/site-packages",
    "HOME, /home/someone, /home/someone/.local/lib/python3.11/site-packages",
    "OTHER, /anything, /usr/local/lib/python3.12/dist-packages"
  })
  void ncclOfPythonsPackagesIsFound(String variable, String value, String packages)
      throws IOException {
    write(packages + "/nvidia/nccl/lib/libnccl.so.2", "NCCL version 2.28.9+cuda13.0");
    Capabilities found = CapabilityProbe.run(options().withEnvironment(Map.of(variable, value)));
    assertThat(found.reason(Capability.NCCL)).startsWith("NCCL 2.28.9, ").contains(packages);
  }

  @Test
  void jnaIsFoundWithoutLoadingIt() {
    assertThat(probe().reason(Capability.JNA)).contains("jna-");
  }

  @Test
  void ncclNeedsAGpuAndJnaToo() throws IOException {
    writeDriver();
    writeGpu("0000:01:00.0");
    write("/usr/lib/libnccl.so.2", "NCCL version 2.28.9+cuda13.0");
    Capabilities whole = probe();
    assertThat(whole.betweenGpus().toString())
        .startsWith(
            "ranks on GPUs: NCCL, where its communicators are requested (nccl: NCCL 2.28.9");
    Capabilities without = whole.with(Capability.JNA, Finding.no("not provided"));
    assertThat(without.betweenGpus())
        .hasToString(
            "ranks on GPUs: the host's collectives, through host memory (jna: not provided)");
  }

  @ParameterizedTest
  @CsvSource({"2.19.3, true", "2.28.1, true", "2.9.9, false", "2.19, false", "3, true"})
  void versionsAreComparedByNumber(String version, boolean expected) {
    assertThat(Versions.isAtLeast(version, "2.19.3")).isEqualTo(expected);
  }

  @Test
  void oneGpuHasNoPeer() throws IOException {
    writeDriver();
    writeGpu("0000:01:00.0");
    Capabilities one = probe();
    assertThat(one.reason(Capability.CUDA_DRIVER)).contains("driver 580.65.06");
    assertThat(one.has(Capability.CUDA_DEVICES)).isTrue();
    assertThat(one.reason(Capability.CUDA_DEVICES)).isEqualTo("1 x NVIDIA H100 80GB HBM3");
    assertThat(one.has(Capability.PEER_ACCESS)).isFalse();
    assertThat(one.reason(Capability.PEER_ACCESS)).contains("one GPU has no other");
  }

  @Test
  void capabilitiesThatOnlyTheDriverKnowsAreUnknown() throws IOException {
    writeDriver();
    writeGpu("0000:01:00.0");
    writeGpu("0000:02:00.0");
    Capabilities two = probe();
    assertThat(two.reason(Capability.CUDA_DEVICES)).startsWith("2 x ");
    assertThat(two.has(Capability.PEER_ACCESS)).isFalse();
    assertThat(two.reason(Capability.PEER_ACCESS)).startsWith("unknown: ");
  }

  @Test
  void driverWithoutGpusIsReported() throws IOException {
    writeDriver();
    assertThat(probe().reason(Capability.CUDA_DEVICES)).contains("is empty");
  }

  @Test
  void versionOfNcclIsInTheNameBehindTheLink() throws IOException {
    write("/opt/nccl/lib/libnccl.so.2.28.3", "");
    Path folder = root.resolve("opt/nccl/lib");
    Files.createSymbolicLink(folder.resolve("libnccl.so.2"), Path.of("libnccl.so.2.28.3"));
    Capabilities found =
        CapabilityProbe.run(
            options().withEnvironment(Map.of("LD_LIBRARY_PATH", "relative:/opt/nccl/lib")));
    assertThat(found.has(Capability.NCCL)).isTrue();
    assertThat(found.reason(Capability.NCCL)).startsWith("NCCL 2.28.3, ");
  }

  /** The text may be at any offset, also across the pieces that are read. */
  @ParameterizedTest
  @CsvSource({"0", "1048570", "1048512", "2500000"})
  void versionOfNcclIsReadFromTheLibrary(int place) throws IOException {
    char[] filling = new char[place];
    Arrays.fill(filling, '\u00ff');
    Path library = root.resolve("libnccl.so.2");
    write("/libnccl.so.2", new String(filling) + "NCCL version 2.30.7+cuda13.0 and more");
    Capabilities found = CapabilityProbe.run(options().withNcclLibrary(library));
    assertThat(found.reason(Capability.NCCL)).startsWith("NCCL 2.30.7, ");
  }

  @Test
  void libraryThatIsNotNcclIsRefused() throws IOException {
    write("/libnccl.so.2", "something else");
    Capabilities found =
        CapabilityProbe.run(options().withNcclLibrary(root.resolve("libnccl.so.2")));
    assertThat(found.has(Capability.NCCL)).isFalse();
    assertThat(found.reason(Capability.NCCL)).contains("does not say which version");
    Capabilities absent = CapabilityProbe.run(options().withNcclLibrary(root.resolve("absent.so")));
    assertThat(absent.reason(Capability.NCCL)).contains("absent.so of the settings does not exist");
  }

  @Test
  void partThatFailsIsANoWithTheFailure() {
    Finding finding =
        CapabilityProbe.finding(
            () -> {
              throw new IOException("the disk failed");
            });
    assertThat(finding).hasToString("no, the probe failed: java.io.IOException: the disk failed");
  }

  @Test
  void recordIsCompleteAndCannotBeChanged() {
    Capabilities found = probe();
    assertThatThrownBy(() -> found.findings().clear())
        .isInstanceOf(UnsupportedOperationException.class);
    Map<Capability, Finding> part = new EnumMap<>(found.findings());
    part.remove(Capability.NCCL);
    assertThatThrownBy(() -> new Capabilities(found.sharedFolder(), part))
        .hasMessageContaining("nccl");
    assertThatThrownBy(() -> Finding.no(" ")).hasMessageContaining("without a reason");
  }
}
