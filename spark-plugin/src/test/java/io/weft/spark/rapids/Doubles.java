package io.weft.spark.rapids;

import io.weft.device.cuda.CudaLibrary;
import io.weft.device.probe.ProbeOptions;
import io.weft.spark.DoubleGpus;
import java.nio.file.Path;
import java.util.Map;

/** The doubles of libcuda and libnccl, as processes of spark-rapids' tests find them. */
final class Doubles {
  /** Names the folder to a child process, which builds nothing. */
  private static final String FOLDER_PROPERTY = "weft.test.rapidsDoubles";

  private Doubles() {}

  private static Path folder() {
    String given = System.getProperty(FOLDER_PROPERTY);
    return given == null ? DoubleGpus.library("libcuda.so.1").getParent() : Path.of(given);
  }

  /** Skips the test, with the reason, where they cannot be built. */
  static void assume() {
    DoubleGpus.assume();
  }

  /** Has a child process use the same. */
  static String property() {
    return "-D" + FOLDER_PROPERTY + "=" + folder();
  }

  /** This machine, as a process sees it whose library path leads to them. */
  static ProbeOptions options() {
    return ProbeOptions.defaults().withEnvironment(Map.of("LD_LIBRARY_PATH", folder().toString()));
  }

  static CudaLibrary cuda() {
    return CudaLibrary.load(options());
  }

  /** No rule was broken since this was asked last, and nothing is left behind. */
  static void assertClean() {
    DoubleGpus.assertClean();
  }
}
