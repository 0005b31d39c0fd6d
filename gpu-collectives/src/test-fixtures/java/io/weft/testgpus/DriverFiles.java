package io.weft.testgpus;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** A root folder with the files of an NVIDIA driver, and the doubles as its libraries. */
public final class DriverFiles {
  /** The folder of the libraries. */
  public static final String LIBRARIES = "usr/lib/x86_64-linux-gnu";

  private DriverFiles() {}

  /**
   * Writes a root folder.
   *
   * @param doubles the folder of the built doubles
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
    // The probe reads the version from the name, because it does not load the library.
    Path nccl = libraries.resolve("libnccl.so.2.28.3");
    Files.copy(doubles.resolve(DoubleBuild.NCCL), nccl);
    Files.createSymbolicLink(libraries.resolve(DoubleBuild.NCCL), nccl);
  }
}
