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
 * A simulated machine with GPUs for the executors of a cluster: a root folder with the NVIDIA
 * driver's files, the doubles of libcuda and libnccl, and a script that gives each Spark worker its
 * own GPU.
 */
public final class DoubleGpus {
  /** The simulated machine has fewer GPUs. */
  private static final int NONE = 99;

  private static final String TAKEN = "gpus-taken";

  private DoubleGpus() {}

  /** Skips the test if there is no compiler for the doubles. */
  public static void assume() {
    String whyNot = DoubleBuild.whyNot();
    assumeTrue(whyNot.isEmpty(), whyNot);
  }

  /**
   * Settings of an application whose executors see such a machine, each with its own GPU assigned
   * by Spark.
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
    String options = Jvm.executorOptions(SparkHome.shared());
    settings.put(
        "spark.executor.extraJavaOptions",
        options + " -D" + ProbeOptions.ROOT_PROPERTY + "=" + root);
    settings.put("spark.worker.resource.gpu.amount", "1");
    settings.put("spark.executor.resource.gpu.amount", "1");
    settings.put("spark.task.resource.gpu.amount", "1");
    return settings;
  }

  /**
   * Leaves all but the first workers of a machine without a GPU: they get numbers that no GPU has.
   *
   * @param workers that get a GPU each
   */
  public static void only(Path folder, int workers) {
    try {
      for (int gpu = workers; gpu < NONE; gpu++) {
        Files.createDirectories(folder.resolve(TAKEN).resolve("" + gpu));
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** The path of the double of libcuda in a machine. */
  public static Path libcuda(Path folder) {
    return folder.resolve("gpu-doubles").resolve(DoubleBuild.CUDA);
  }

  /** The process that creates the n-th folder first gets GPU n. */
  private static Path discovery(Path folder) throws IOException {
    Path taken = Files.createDirectories(folder.resolve(TAKEN));
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
