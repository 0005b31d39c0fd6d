package io.weft.transfers;

import com.sun.jna.Library;
import io.weft.device.cuda.CudaLibrary;
import io.weft.device.probe.ProbeOptions;
import io.weft.testgpus.DoubleBuild;
import io.weft.testgpus.TestMachine;
import org.junit.jupiter.api.Assumptions;

/** The GPUs of the {@link TestMachine}, for executors of tests. */
public final class TestGpus {
  private static final String SHARED_PROPERTY = "weft.test.sharedGpu";

  private TestGpus() {}

  /** Functions of the doubles that only tests call. */
  public interface Controls extends Library {
    void cudaDoublePause(int paused);

    void cudaDoubleLose(int device, int code);

    void cudaDoubleStall(int stall);

    int cudaDoubleStalled();

    int cudaDoubleHostCopies();

    long cudaDoubleDeviceBytesCopied();
  }

  /** Functions of the double of libnccl that only tests call. */
  public interface NcclControls extends Library {
    int ncclDoubleLaunches();

    int ncclDoubleMaxBlocks();
  }

  /** Skips the test, with the reason, if there are none. */
  public static void assume() {
    TestMachine.assume(1);
  }

  /** Skips the test if there are fewer. */
  public static void assume(int gpus) {
    TestMachine.assume(gpus);
  }

  /** Skips the test, with the reason, if arrays cannot go this way here. */
  static void assume(GpuPath way) {
    TestMachine.assume(1);
    String whyNot = way.whyNot();
    Assumptions.assumeTrue(whyNot.isEmpty(), whyNot);
  }

  /** Skips a test that needs the doubles. */
  public static void assumeDoubles() {
    TestMachine.assumeDoubles();
  }

  static boolean areDoubles() {
    return !TestMachine.isReal();
  }

  /** Whether figures of speed mean something. */
  static boolean haveSpeed() {
    return TestMachine.hasSpeed();
  }

  /** The number of GPUs; the doubles have eight. */
  static int count() {
    return TestMachine.count();
  }

  /** The number of the GPU of an executor. Executors share GPUs if there are too few. */
  static int ordinal(int executor) {
    return Boolean.getBoolean(SHARED_PROPERTY) ? 0 : executor % count();
  }

  /** The property that makes executors of child processes share one GPU. */
  static String sharedProperty() {
    return "-D" + SHARED_PROPERTY + "=true";
  }

  /** Copies between host and GPUs since the last call; 0 without the doubles. */
  static int hostCopies() {
    return isForThisProcess() ? controls().cudaDoubleHostCopies() : 0;
  }

  /** Bytes copied on GPUs by the driver since the last call; 0 without the doubles. */
  static long deviceBytesCopied() {
    return isForThisProcess() ? controls().cudaDoubleDeviceBytesCopied() : 0;
  }

  /** Launches of NCCL since the last call; 0 without the doubles. */
  static int ncclLaunches() {
    return isForThisProcess() ? ncclControls().ncclDoubleLaunches() : 0;
  }

  /** Whether this process was started to use GPUs. */
  static boolean isForThisProcess() {
    return TestMachine.isForThisProcess();
  }

  /** The property that makes a child process use the same. */
  static String property() {
    return TestMachine.property();
  }

  /**
   * The capabilities of this machine; with the doubles, of a process whose library path has them.
   */
  public static ProbeOptions options() {
    return TestMachine.options();
  }

  /** The driver of this process. */
  public static CudaLibrary cuda() {
    return TestMachine.cuda();
  }

  /** The test functions of the doubles. */
  public static Controls controls() {
    return TestMachine.controls(DoubleBuild.CUDA, Controls.class);
  }

  /** The test functions of the double of libnccl. */
  public static NcclControls ncclControls() {
    return TestMachine.controls(DoubleBuild.NCCL, NcclControls.class);
  }

  /** The living handles of the doubles; empty with real libraries. */
  public static String live() {
    return TestMachine.live();
  }

  /** For doubles: checks that no rule was broken since the last call and that nothing leaks. */
  public static void assertClean() {
    TestMachine.assertClean();
  }
}
