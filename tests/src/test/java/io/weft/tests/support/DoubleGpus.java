package io.weft.tests.support;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.sun.jna.Native;
import io.weft.device.probe.ProbeOptions;
import io.weft.testgpus.DoubleBuild;
import io.weft.testgpus.DriverFiles;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URISyntaxException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * A machine with GPUs for the executors of a cluster: a root folder with what the NVIDIA driver
 * shows in files, the doubles of libcuda and libnccl, and a script that gives each of Spark's
 * workers a GPU of its own.
 */
public final class DoubleGpus {
  private DoubleGpus() {}

  /** Skips the test where there is no compiler for them. */
  public static void assume() {
    String whyNot = DoubleBuild.whyNot();
    assumeTrue(whyNot.isEmpty(), whyNot);
  }

  /**
   * Settings of an application whose executors see such a machine, each with a GPU of its own that
   * Spark gives it.
   *
   * @param folder of the test, for the machine
   */
  public static Map<String, String> settings(Path folder) {
    Path root = folder.resolve("gpu-root");
    Map<String, String> settings = new LinkedHashMap<>();
    try {
      Path doubles = folder.resolve("gpu-doubles");
      DoubleBuild.into(doubles);
      DriverFiles.write(root, doubles);
      settings.put("spark.worker.resource.gpu.discoveryScript", discovery(folder).toString());
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    settings.put("spark.jars", BuildTree.weftJar() + "," + ApplicationJar.get() + "," + jna());
    String options = String.join(" ", Jvm.SHORT_LIVED);
    settings.put(
        "spark.executor.extraJavaOptions",
        options + " -D" + ProbeOptions.ROOT_PROPERTY + "=" + root);
    settings.put("spark.worker.resource.gpu.amount", "1");
    settings.put("spark.executor.resource.gpu.amount", "1");
    settings.put("spark.task.resource.gpu.amount", "1");
    return settings;
  }

  /** Where the double of libcuda of a machine lies. */
  public static Path libcuda(Path folder) {
    return folder.resolve("gpu-doubles").resolve(DoubleBuild.CUDA);
  }

  /** Who makes the n-th folder first has GPU n. */
  private static Path discovery(Path folder) throws IOException {
    Path taken = Files.createDirectories(folder.resolve("gpus-taken"));
    Path script = folder.resolve("discover-gpus");
    Files.writeString(
        script,
        """
        #!/bin/sh
        n=0
        while ! mkdir "%s/$n" 2>/dev/null; do n=$((n + 1)); done
        echo "{\\"name\\": \\"gpu\\", \\"addresses\\": [\\"$n\\"]}"
        """
            .formatted(taken));
    return Files.setPosixFilePermissions(script, PosixFilePermissions.fromString("rwx------"));
  }

  private static Path jna() {
    try {
      return Path.of(Native.class.getProtectionDomain().getCodeSource().getLocation().toURI());
    } catch (URISyntaxException e) {
      throw new IllegalStateException(e);
    }
  }
}
