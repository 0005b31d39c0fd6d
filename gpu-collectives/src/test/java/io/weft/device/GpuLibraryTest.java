package io.weft.device;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Unusable libraries cause a message, and no library is loaded unless it is requested. */
class GpuLibraryTest {
  @TempDir Path folder;

  @Test
  void noGpuLibraryIsLoadedWithoutARequest() throws Exception {
    Path log = folder.resolve("classes.log");
    String output =
        GpuLibraryProcess.run(
            true, List.of("-Xlog:class+load:file=" + log), "none", folder.toString());
    assertThat(output).contains("rank 0 has ended");
    String classes = Files.readString(log);
    assertThat(classes).contains("] io.weft.collectives.Communicator ");
    for (String forbidden :
        List.of(
            "com.sun.jna",
            "io.weft.device.cuda",
            "io.weft.device.NativeBinding",
            "io.weft.collectives.nccl")) {
      assertThat(classes).doesNotContain("] " + forbidden);
    }
  }

  @Test
  void everythingElseWorksWithoutJna() throws Exception {
    assertThat(GpuLibraryProcess.run(false, List.of(), "none", folder.toString()))
        .contains("rank 0 has ended");
  }

  @Test
  void missingJnaIsTheReason() throws Exception {
    Path library = Files.createFile(folder.resolve("libnccl.so.2"));
    assertThat(GpuLibraryProcess.run(false, List.of(), "nccl", library.toString()))
        .contains("unavailable: " + library + " cannot be used")
        .contains("net.java.dev.jna:jna is not on the class path");
  }

  @Test
  void missingLibraryIsTheReason() throws Exception {
    assertThat(GpuLibraryProcess.run(true, List.of(), "nccl", folder.resolve("no.so").toString()))
        .contains("unavailable: the library " + folder.resolve("no.so") + " of the settings");
  }

  @Test
  void fileThatIsNotALibraryIsTheReason() throws Exception {
    Path library = Files.writeString(folder.resolve("libnccl.so.2"), "not a library");
    assertThat(GpuLibraryProcess.run(true, List.of(), "nccl", library.toString()))
        .contains("unavailable: " + library + " cannot be loaded");
  }

  @Test
  @UsesDoubles
  void oldNcclIsRefusedWithWhatIsNeeded() throws Exception {
    String old = DoubleLibraries.folder().resolve("old/libnccl.so.2").toString();
    assertThat(run("nccl", old))
        .contains("unavailable: NCCL 2.12.12 in " + old + " is too old: Weft needs 2.19.3");
  }

  @Test
  @UsesDoubles
  void libraryThatLacksFunctionsIsRefusedWithTheirNames() throws Exception {
    Path other = DoubleLibraries.folder().resolve("libcuda.so.1");
    Path disguised = Files.copy(other, folder.resolve("libnccl.so.2"));
    assertThat(run("nccl", disguised.toString()))
        .contains("unavailable: " + disguised + " lacks ncclGetVersion: it is older");
  }

  @Test
  void reportSaysWhyNoLibraryIsUsable() throws Exception {
    assertThat(run("report", folder.toString()))
        .contains("the driver cannot be used: libcuda.so.1 is not in LD_LIBRARY_PATH and 9 usual")
        .contains("NCCL cannot be used: libnccl.so.2 is not in LD_LIBRARY_PATH, 9 usual folders");
  }

  @Test
  @UsesDoubles
  void librariesDescribeThemselves() throws Exception {
    String doubles = DoubleLibraries.folder().toString();
    assertThat(run("nccl", doubles + "/libnccl.so.2"))
        .contains("NCCL 2.30.7 in " + doubles)
        .contains("with windows");
    assertThat(run("cuda", doubles)).contains("CUDA driver 12.8 in " + doubles);
  }

  @Test
  @UsesDoubles
  void ncclWithoutWindowsIsUsedAndSaysSo() throws Exception {
    Path library = DoubleLibraries.folder().resolve("without-windows/libnccl.so.2");
    assertThat(run("nccl", library.toString()))
        .contains("NCCL 2.21.5 in " + library)
        .contains("NCCL 2.21.5 has no windows, which came with 2.27.3");
  }

  /** Kernels are then loaded when they are looked up. */
  @Test
  @UsesDoubles
  void driverWithoutCuFuncLoadIsUsed() throws Exception {
    String old = DoubleLibraries.folder() + "/without-loading";
    assertThat(run("kernels", old)).contains("with kernel weft_starts of the kernels partition");
  }

  /** As in NVIDIA's images: their compat driver fails beside a newer driver of the kernel. */
  @Test
  @UsesDoubles
  void compatDriverIsTriedLast() throws Exception {
    link("usr/local/cuda/compat", "of-another-driver/libcuda.so.1");
    link("usr/lib/x86_64-linux-gnu", "libcuda.so.1");
    assertThat(run("report", folder.toString()))
        .contains("CUDA driver 12.8 in " + folder.resolve("usr/lib/x86_64-linux-gnu"))
        .doesNotContain("is used, because");
  }

  @Test
  @UsesDoubles
  void brokenDriverIsSkippedWithAWarning() throws Exception {
    link("usr/lib/x86_64-linux-gnu", "of-another-driver/libcuda.so.1");
    Path wsl = Files.createDirectories(folder.resolve("usr/lib/wsl/lib"));
    Files.writeString(wsl.resolve("libcuda.so.1"), "not a library");
    assertThat(run("report", folder.toString()))
        .contains("the driver cannot be used: ")
        .contains(wsl.resolve("libcuda.so.1") + " cannot be loaded")
        .contains("cuInit of " + folder.resolve("usr/lib/x86_64-linux-gnu/libcuda.so.1"))
        .contains("CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803)");
    link("usr/local/nvidia/lib64", "libcuda.so.1");
    assertThat(run("report", folder.toString()))
        .contains("CUDA driver 12.8 in " + folder.resolve("usr/local/nvidia/lib64"))
        .contains("cuda:0 Weft test double 0");
  }

  /** NCCL loads libcuda by its name, and would get the rejected one. */
  @Test
  @UsesDoubles
  void ncclIsNotUsedWithADriverThatWasRejected() throws Exception {
    Path doubles = DoubleLibraries.folder();
    String drivers = doubles.resolve("of-another-driver") + ":" + doubles;
    assertThat(run("both", drivers, doubles + "/libnccl.so.2"))
        .contains("CUDA driver 12.8 in " + doubles)
        .contains("unavailable: NCCL would use " + doubles.resolve("of-another-driver"));
    assertThat(run("both", "" + doubles, doubles + "/libnccl.so.2")).doesNotContain("unavailable");
  }

  private void link(String place, String library) throws IOException {
    Path parent = Files.createDirectories(folder.resolve(place));
    Files.createSymbolicLink(
        parent.resolve("libcuda.so.1"), DoubleLibraries.folder().resolve(library));
  }

  private static String run(String... arguments) throws Exception {
    return GpuLibraryProcess.run(true, List.of(), arguments);
  }
}
