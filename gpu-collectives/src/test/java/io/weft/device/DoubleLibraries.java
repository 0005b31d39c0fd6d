package io.weft.device;

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
 * The doubles of the {@link TestMachine}, their functions for tests only, and doubles of older
 * libnccl versions, each in a folder below.
 */
public final class DoubleLibraries {
  /** The property that tells a child process the folder, so that it builds nothing. */
  public static final String FOLDER_PROPERTY = TestMachine.FOLDER_PROPERTY;

  private DoubleLibraries() {}

  /** Functions of the double of libcuda that only tests call. */
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

    void cudaDoubleLose(int device, int code);

    void cudaDoubleDriver(int version, int devices);

    int cudaDoublePriority(Pointer stream);
  }

  /** Functions of the double of libnccl that only tests call. */
  public interface NcclControls extends Library {
    void ncclDoubleFailNext(int state);

    void ncclDoubleDieInside(int chunks);

    void ncclDoubleHang(int operations);

    int ncclDoubleLaunches();

    int ncclDoubleMaxBlocks();
  }

  private static final class Built {
    private static final String WHY_NOT = tryBuild();

    /** The parent process has built those of a child process. */
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
        DoubleBuild.olderNccl(folder, "without-sharing", "-DWEFT_DOUBLE_WITHOUT_SHARING");
        DoubleBuild.olderCuda(folder, "without-loading", "-DWEFT_DOUBLE_WITHOUT_LOADING");
        DoubleBuild.olderCuda(folder, "of-another-driver", "-DWEFT_DOUBLE_INIT=803");
        return "";
      } catch (IOException e) {
        return "the doubles of older libraries cannot be built: " + e.getMessage();
      }
    }
  }

  /** The reason why there are no doubles; empty if there are. */
  public static String whyNot() {
    return Built.WHY_NOT;
  }

  /** The folder with the doubles, for tests with {@link UsesDoubles}. */
  public static Path folder() {
    assertThat(Built.WHY_NOT).isEmpty();
    return TestMachine.doubles();
  }

  /** The options of the test machine. */
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

  /** The violations of rules since the last call. */
  public static String violations() {
    return TestMachine.violations();
  }

  /** The handles that are not freed. */
  public static String live() {
    return TestMachine.live();
  }

  /** Asserts that there are no violations and no leaked handles. */
  public static void assertClean() {
    TestMachine.assertClean();
  }
}
