package io.weft.device.library;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.jna.Library;
import com.sun.jna.Pointer;
import io.weft.device.cuda.CudaLibrary;
import io.weft.device.probe.ProbeOptions;
import io.weft.testgpus.DoubleBuild;
import io.weft.testgpus.TestMachine;
import java.io.IOException;
import java.nio.file.Path;

/**
 * The doubles of the {@link TestMachine}, what only tests call of them, and some of older versions
 * of libnccl, each in a folder below.
 */
public final class DoubleLibraries {
  /** Names the folder to a child process, which builds nothing. */
  public static final String FOLDER_PROPERTY = TestMachine.FOLDER_PROPERTY;

  private DoubleLibraries() {}

  /** What only tests call of the double of libcuda. */
  public interface CudaControls extends Library {
    int cudaDoubleViolations(byte[] text, int size);

    int cudaDoubleLive(byte[] text, int size);

    void cudaDoublePause(int paused);

    void cudaDoubleHold(int device);

    void cudaDoubleUnreachable(int apart);

    void cudaDoubleFailEvents(int events);

    void cudaDoubleStall(int stall);

    int cudaDoubleStalled();

    int cudaDoublePageableCopies();

    int cudaDoubleHostCopies();

    int cudaDoubleGraphLaunches();

    int cudaDoubleLaunches();

    void cudaDoubleLose(int device, int code);

    void cudaDoubleDriver(int version, int devices);

    int cudaDoublePriority(Pointer stream);
  }

  /** What only tests call of the double of libnccl. */
  public interface NcclControls extends Library {
    void ncclDoubleFailNext(int state);

    void ncclDoubleDieInside(int chunks);

    void ncclDoubleHang(int operations);

    void ncclDoubleBreakProxies(int state);

    int ncclDoubleLaunches();
  }

  private static final class Built {
    private static final String WHY_NOT = tryBuild();

    /** Those of a child process are there. */
    private static String tryBuild() {
      String whyNot = TestMachine.whyNoDoubles();
      if (!whyNot.isEmpty() || TestMachine.isForThisProcess()) {
        return whyNot;
      }
      try {
        Path folder = TestMachine.doubles();
        DoubleBuild.olderNccl(folder, "old", "-DWEFT_DOUBLE_OLD", "-Wno-unused-function");
        DoubleBuild.olderNccl(
            folder, "without-windows", "-DWEFT_DOUBLE_WITHOUT_WINDOWS", "-Wno-unused-function");
        DoubleBuild.olderNccl(folder, "without-revoke", "-DWEFT_DOUBLE_WITHOUT_REVOKE");
        return "";
      } catch (IOException e) {
        return "the doubles of older libraries cannot be built: " + e.getMessage();
      }
    }
  }

  /** Why there are none here; empty where they are. */
  public static String whyNot() {
    return Built.WHY_NOT;
  }

  /** The folder with the doubles, for tests that say {@link UsesDoubles}. */
  public static Path folder() {
    assertThat(Built.WHY_NOT).isEmpty();
    return TestMachine.doubles();
  }

  /** The machine of the tests. */
  public static ProbeOptions options() {
    return TestMachine.options();
  }

  /** The driver of this process. */
  public static CudaLibrary cuda() {
    return TestMachine.cuda();
  }

  public static CudaControls cudaControls() {
    return TestMachine.controls(DoubleBuild.CUDA, CudaControls.class);
  }

  public static NcclControls ncclControls() {
    return TestMachine.controls(DoubleBuild.NCCL, NcclControls.class);
  }

  /** The rules that were broken since this was asked last. */
  public static String violations() {
    return TestMachine.violations();
  }

  /** The handles that have not been given back. */
  public static String live() {
    return TestMachine.live();
  }

  /** No rule was broken and nothing was left behind. */
  public static void assertClean() {
    TestMachine.assertClean();
  }
}
