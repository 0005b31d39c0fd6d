package io.weft.testgpus;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** A root folder with what an NVIDIA driver shows in files, and the doubles as its libraries. */
public final class DriverFiles {
  /** Where the libraries are. */
  public static final String LIBRARIES = "usr/lib/x86_64-linux-gnu";

  private DriverFiles() {}

  /**
   * Makes one.
   *
   * @param doubles the folder that they were built into
   */
  public static void write(Path root, Path doubles) throws IOException {
    Path driver = Files.createDirectories(root.resolve("proc/driver/nvidia"));
    Files.writeString(
        driver.resolve("version"),
        "NVRM version: NVIDIA UNIX Kernel Module  570.86.15  Of A Test\n");
    Path gpu = Files.createDirectories(driver.resolve("gpus/0000:01:00.0"));
    Files.writeString(gpu.resolve("information"), "Model: \t\t A double\n");
    Path libraries = Files.createDirectories(root.resolve(LIBRARIES));
    Files.createSymbolicLink(
        libraries.resolve(DoubleBuild.CUDA), doubles.resolve(DoubleBuild.CUDA));
    // The version is read in the name, as the library is not loaded for it.
    Path nccl = libraries.resolve("libnccl.so.2.28.3");
    Files.copy(doubles.resolve(DoubleBuild.NCCL), nccl);
    Files.createSymbolicLink(libraries.resolve(DoubleBuild.NCCL), nccl);
  }
}
