package io.weft.testgpus;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.sun.jna.Library;
import com.sun.jna.Native;
import io.weft.device.cuda.CudaDevice;
import io.weft.device.cuda.CudaException;
import io.weft.device.cuda.CudaLibrary;
import io.weft.device.library.UnavailableLibraryException;
import io.weft.device.probe.ProbeOptions;
import java.io.IOException;
import java.lang.reflect.Proxy;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;

/**
 * The machine whose GPUs tests use: eight of the doubles of libcuda and libnccl, which are built
 * once for each test process, as a process loads one libcuda only; or the machine's own, where
 * {@code -Dweft.test.gpus=machine} says so, as {@code tests/gpu/run} does.
 */
public final class TestMachine {
  /** Names the folder of the doubles to a child process, which builds nothing. */
  public static final String FOLDER_PROPERTY = "weft.test.gpuDoubles";

  private static final String KIND_PROPERTY = "weft.test.gpus";
  private static final boolean REAL =
      System.getProperty(KIND_PROPERTY, "doubles").equals("machine");
  private static final int TEXT_BYTES = 16_384;

  private TestMachine() {}

  /** What tests read of the double of libcuda. */
  private interface Notes extends Library {
    int cudaDoubleViolations(byte[] text, int size);

    int cudaDoubleLive(byte[] text, int size);
  }

  private static final class Built {
    private static Path folder;
    private static final String WHY_NOT = tryBuild();

    private static String tryBuild() {
      String given = System.getProperty(FOLDER_PROPERTY);
      String process = "" + ProcessHandle.current().pid();
      folder =
          given == null
              ? Path.of("target", "gpu-doubles", process).toAbsolutePath()
              : Path.of(given);
      try {
        if (given == null) {
          DoubleBuild.into(folder);
        }
        return "";
      } catch (IOException e) {
        return "the doubles of libcuda and libnccl cannot be built: " + e.getMessage();
      }
    }
  }

  /** Whether the GPUs are the machine's own. */
  public static boolean isReal() {
    return REAL;
  }

  /** Why there are not so many GPUs here; empty where there are. */
  public static String whyNot(int gpus) {
    if (!REAL && !Built.WHY_NOT.isEmpty()) {
      return Built.WHY_NOT;
    }
    try {
      return count() >= gpus ? "" : "needs " + gpus + " GPUs, there are " + count();
    } catch (UnavailableLibraryException | CudaException e) {
      return "no GPU can be used: " + e.getMessage();
    }
  }

  /** Skips the test, with the reason, where there are fewer. */
  public static void assume(int gpus) {
    String whyNot = whyNot(gpus);
    assumeTrue(whyNot.isEmpty(), whyNot);
  }

  /** Why there are no doubles here; empty where there are. */
  public static String whyNoDoubles() {
    return REAL ? "only the doubles do this" : Built.WHY_NOT;
  }

  /** Skips a test of what only the doubles do. */
  public static void assumeDoubles() {
    String whyNot = whyNoDoubles();
    assumeTrue(whyNot.isEmpty(), whyNot);
  }

  /**
   * Skips the test where the machine's own NCCL cannot bring the ranks together.
   *
   * @param answer of a rank that was to create a communicator
   */
  public static void assumeNotRefused(String answer) {
    assumeTrue(!REAL || !answer.startsWith("MISMATCH"), answer);
  }

  /** Where the doubles lie. */
  public static Path doubles() {
    assertThat(whyNoDoubles()).isEmpty();
    return Built.folder;
  }

  /** Whether this process was started to use GPUs. */
  public static boolean isForThisProcess() {
    return REAL || System.getProperty(FOLDER_PROPERTY) != null;
  }

  /** Has a child process use the same GPUs. */
  public static String property() {
    return REAL ? "-D" + KIND_PROPERTY + "=machine" : "-D" + FOLDER_PROPERTY + "=" + doubles();
  }

  /** This machine; with the doubles, as a process sees it whose library path leads to them. */
  public static ProbeOptions options() {
    if (REAL) {
      return ProbeOptions.defaults();
    }
    Map<String, String> environment = new HashMap<>(System.getenv());
    environment.keySet().removeIf(name -> !name.startsWith("NCCL_"));
    environment.put("LD_LIBRARY_PATH", doubles().toString());
    return ProbeOptions.defaults().withEnvironment(environment);
  }

  /** The driver of this process. */
  public static CudaLibrary cuda() {
    return CudaLibrary.load(options());
  }

  /** How many GPUs there are. */
  public static int count() {
    return cuda().gpus().size();
  }

  /** A GPU for what may be any of them: tests share where there are fewer. */
  public static CudaDevice open(int number) {
    CudaLibrary cuda = cuda();
    return cuda.open(number % cuda.gpus().size());
  }

  /**
   * What only tests call of a double; on the machine's own libraries it does nothing and has
   * counted nothing.
   *
   * @param library the name of its file
   */
  public static <T extends Library> T controls(String library, Class<T> functions) {
    if (REAL) {
      Object nothing =
          Proxy.newProxyInstance(
              functions.getClassLoader(),
              new Class<?>[] {functions},
              (proxy, method, arguments) -> method.getReturnType() == int.class ? 0 : null);
      return functions.cast(nothing);
    }
    return Native.load(doubles().resolve(library).toString(), functions);
  }

  /** Of doubles, the rules that were broken since this was asked last. */
  public static String violations() {
    byte[] text = new byte[TEXT_BYTES];
    int unused = controls(DoubleBuild.CUDA, Notes.class).cudaDoubleViolations(text, text.length);
    return Native.toString(text);
  }

  /** Of doubles, the handles that have not been given back. */
  public static String live() {
    byte[] text = new byte[TEXT_BYTES];
    int unused = controls(DoubleBuild.CUDA, Notes.class).cudaDoubleLive(text, text.length);
    return Native.toString(text);
  }

  /** Of doubles: no rule was broken and nothing was left behind. */
  public static void assertClean() {
    assertThat(violations()).as("rules that were broken").isEmpty();
    assertThat(live()).as("what was left behind").isEmpty();
  }
}
