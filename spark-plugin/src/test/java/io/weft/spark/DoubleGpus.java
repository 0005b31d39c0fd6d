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
 * Makes the GPUs of the {@link TestMachine} visible to an application. With doubles, a root folder
 * has the files of the NVIDIA driver.
 */
public final class DoubleGpus {
  private DoubleGpus() {}

  /** Functions for tests only. */
  public interface Controls extends Library {
    void cudaDoublePause(int paused);

    void cudaDoubleFailEvents(int events);

    /** Bytes that were copied from a GPU to the host since the last call. */
    long cudaDoubleBytesToHost();
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

  /** Skips the test with a reason if there are no GPUs. */
  public static void assume() {
    TestMachine.assume(1);
  }

  /** Starts an application whose only executor, in this JVM, has the first GPU. */
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

  /**
   * Sets the NCCL library. A named library causes a new probe of the machine for this application.
   */
  private static Map<String, String> withNccl(Map<String, String> settings) {
    Map<String, String> all = new HashMap<>(settings);
    all.put("spark.weft.nccl.library", library("libnccl.so.2").toString());
    return all;
  }

  /** Path of a library's double. A process loads one libcuda, so all tests share it. */
  public static Path library(String name) {
    return Built.ROOT.resolve(DriverFiles.LIBRARIES).resolve(name);
  }

  /** Path of the CUDA driver that the application uses, for other processes. */
  public static String driver() {
    if (!TestMachine.isReal()) {
      return library(DoubleBuild.CUDA).toString();
    }
    // As in "CUDA driver 12.8 in /usr/lib/x86_64-linux-gnu/libcuda.so.1".
    String described = TestMachine.cuda().toString();
    return described.substring(described.indexOf('/'));
  }

  /** Controls of the libcuda double that the application has loaded. */
  public static Controls controls() {
    return TestMachine.controls(DoubleBuild.CUDA, Controls.class);
  }

  /** Asserts that no rule was broken since the last call, and that no handle is left at the end. */
  public static void assertClean() {
    assertThat(violations()).as("rules that were broken").isEmpty();
    Awaitility.await("the end of remaining handles")
        .atMost(Duration.ofSeconds(60))
        .untilAsserted(() -> assertThat(live()).as("remaining handles").isEmpty());
    assertThat(violations()).as("rules that were broken at the end").isEmpty();
  }

  /** Rules broken since the last call. */
  public static String violations() {
    return TestMachine.violations();
  }

  /** Handles that were not freed. */
  public static String live() {
    return TestMachine.live();
  }
}
