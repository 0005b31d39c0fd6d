package io.weft.spark.rapids;

import io.weft.device.cuda.CudaLibrary;
import io.weft.device.probe.ProbeOptions;
import io.weft.spark.DoubleGpus;
import io.weft.testgpus.TestMachine;
import java.nio.file.Path;
import java.util.Map;

/** The GPUs of the {@link TestMachine} for processes of spark-rapids' tests. */
final class Doubles {
  /** The property that names the folder to a child process, which builds nothing. */
  private static final String FOLDER_PROPERTY = "weft.test.rapidsDoubles";

  private Doubles() {}

  private static Path folder() {
    String given = System.getProperty(FOLDER_PROPERTY);
    return given == null ? DoubleGpus.library("libcuda.so.1").getParent() : Path.of(given);
  }

  /** Skips the test, with the reason, if they cannot be built. */
  static void assume() {
    DoubleGpus.assume();
  }

  /** The property that makes a child process use the same. */
  static String property() {
    return TestMachine.isReal() ? TestMachine.property() : "-D" + FOLDER_PROPERTY + "=" + folder();
  }

  /** The capabilities of this machine; with doubles, of a process that finds them. */
  static ProbeOptions options() {
    if (TestMachine.isReal()) {
      return TestMachine.options();
    }
    return ProbeOptions.defaults().withEnvironment(Map.of("LD_LIBRARY_PATH", folder().toString()));
  }

  static CudaLibrary cuda() {
    return CudaLibrary.load(options());
  }

  /** The GPU of an executor. Executors share GPUs if there are too few. */
  static int ordinal(int executor) {
    return executor % cuda().gpus().size();
  }

  /** Checks that no rule was broken since the last call and that nothing leaks. */
  static void assertClean() {
    DoubleGpus.assertClean();
  }
}
