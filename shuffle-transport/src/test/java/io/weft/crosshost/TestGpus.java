package io.weft.crosshost;

import com.sun.jna.Library;
import io.weft.device.cuda.CudaLibrary;
import io.weft.device.probe.ProbeOptions;
import io.weft.testgpus.DoubleBuild;
import io.weft.testgpus.TestMachine;

/** The GPUs of the {@link TestMachine}, as executors of tests have them. */
public final class TestGpus {
  private static final String SHARED_PROPERTY = "weft.test.sharedGpu";

  private TestGpus() {}

  /** What only tests call. */
  public interface Controls extends Library {
    void cudaDoublePause(int paused);

    void cudaDoubleStall(int stall);

    int cudaDoubleStalled();

    int cudaDoubleHostCopies();
  }

  /** Skips the test, with the reason, where there are none. */
  public static void assume() {
    TestMachine.assume(1);
  }

  /** Skips the test where there are fewer. */
  public static void assume(int gpus) {
    TestMachine.assume(gpus);
  }

  /** Skips a test of what only the doubles do. */
  public static void assumeDoubles() {
    TestMachine.assumeDoubles();
  }

  static boolean areDoubles() {
    return !TestMachine.isReal();
  }

  /** How many there are: eight of the doubles. */
  static int count() {
    return TestMachine.count();
  }

  /** The number of the GPU of an executor; executors share where there are more of them. */
  static int ordinal(int executor) {
    return Boolean.getBoolean(SHARED_PROPERTY) ? 0 : executor % count();
  }

  /** Has the executors of child processes share one GPU. */
  static String sharedProperty() {
    return "-D" + SHARED_PROPERTY + "=true";
  }

  /** Copies between the host and GPUs since this was asked last; 0 where there are no doubles. */
  static int hostCopies() {
    return isForThisProcess() ? controls().cudaDoubleHostCopies() : 0;
  }

  /** Whether this process was started to use GPUs. */
  static boolean isForThisProcess() {
    return TestMachine.isForThisProcess();
  }

  /** Has a child process use the same. */
  static String property() {
    return TestMachine.property();
  }

  /** This machine; with the doubles, as a process sees it whose library path leads to them. */
  public static ProbeOptions options() {
    return TestMachine.options();
  }

  /** The driver of this process. */
  public static CudaLibrary cuda() {
    return TestMachine.cuda();
  }

  /** Of doubles, what only tests call. */
  public static Controls controls() {
    return TestMachine.controls(DoubleBuild.CUDA, Controls.class);
  }

  /** Of doubles: no rule was broken since this was asked last, and nothing is left behind. */
  public static void assertClean() {
    TestMachine.assertClean();
  }
}
