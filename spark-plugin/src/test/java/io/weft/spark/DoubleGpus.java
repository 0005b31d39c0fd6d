package io.weft.spark;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.jna.Library;
import io.weft.device.probe.ProbeOptions;
import io.weft.testgpus.DoubleBuild;
import io.weft.testgpus.DriverFiles;
import io.weft.testgpus.TestMachine;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import org.awaitility.Awaitility;

/**
 * The GPUs of the {@link TestMachine} as an application sees them: of the doubles, by a root folder
 * with what the NVIDIA driver shows in files.
 */
public final class DoubleGpus {
  private DoubleGpus() {}

  /** What only tests call. */
  public interface Controls extends Library {
    void cudaDoublePause(int paused);

    void cudaDoubleFailEvents(int events);
  }

  private static final class Built {
    private static final Path ROOT = build();

    private static Path build() {
      Path made =
          Path.of("target", "gpu-root", "" + ProcessHandle.current().pid()).toAbsolutePath();
      try {
        DriverFiles.write(made, TestMachine.doubles());
        return made;
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    }
  }

  /** Skips the test, with the reason, where there are none. */
  public static void assume() {
    TestMachine.assume(1);
  }

  /** Starts an application whose only executor, in this JVM, has the first of the GPUs. */
  public static LocalSpark start(Map<String, String> settings) {
    assume();
    if (TestMachine.isReal()) {
      return LocalSpark.start(settings);
    }
    System.setProperty(ProbeOptions.ROOT_PROPERTY, Built.ROOT.toString());
    try {
      LocalSpark spark = LocalSpark.start(withNccl(settings));
      return spark;
    } finally {
      System.clearProperty(ProbeOptions.ROOT_PROPERTY);
    }
  }

  /** A library that is named has the machine looked at anew, once for this application. */
  private static Map<String, String> withNccl(Map<String, String> settings) {
    Map<String, String> all = new HashMap<>(settings);
    all.put("spark.weft.nccl.library", library("libnccl.so.2").toString());
    return all;
  }

  /** Where the double of a library lies: a process loads one of libcuda, so all tests share it. */
  public static Path library(String name) {
    return Built.ROOT.resolve(DriverFiles.LIBRARIES).resolve(name);
  }

  /** That of libcuda, which the application has loaded. */
  public static Controls controls() {
    return TestMachine.controls(DoubleBuild.CUDA, Controls.class);
  }

  /**
   * No rule was broken since this was asked last, and nothing is left behind when all has ended.
   */
  public static void assertClean() {
    assertThat(violations()).as("rules that were broken").isEmpty();
    Awaitility.await("the end of what was left behind")
        .atMost(Duration.ofSeconds(60))
        .untilAsserted(() -> assertThat(live()).as("what was left behind").isEmpty());
    assertThat(violations()).as("rules that were broken at the end").isEmpty();
  }

  /** The rules that were broken since this was asked last. */
  public static String violations() {
    return TestMachine.violations();
  }

  /** The handles that have not been given back. */
  public static String live() {
    return TestMachine.live();
  }
}
