package io.weft.testgpus;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.sun.jna.Library;
import com.sun.jna.Native;
import io.weft.device.UnavailableLibraryException;
import io.weft.device.cuda.CudaDevice;
import io.weft.device.cuda.CudaException;
import io.weft.device.cuda.CudaLibrary;
import io.weft.device.probe.ProbeOptions;
import java.io.IOException;
import java.lang.reflect.Proxy;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;

/**
 * The machine whose GPUs tests use: eight GPUs of the doubles of libcuda and libnccl, or the real
 * ones. The doubles are built once for each test process, because a process loads one libcuda only.
 * With {@code -Dweft.test.gpus=machine}, as in {@code tests/gpu/run}, the GPUs are the machine's
 * own.
 */
public final class TestMachine {
  /**
   * The property that tells a child process the folder of the doubles, so that it builds nothing.
   */
  public static final String FOLDER_PROPERTY = "weft.test.gpuDoubles";

  private static final String KIND_PROPERTY = "weft.test.gpus";
  private static final boolean REAL =
      System.getProperty(KIND_PROPERTY, "doubles").equals("machine");
  private static final String DOUBLE_NAME = "Weft test double";
  private static final int TEXT_BYTES = 16_384;

  /** What the functions of doubles return where the libraries are real. */
  private static final Map<Class<?>, Object> NOTHING = Map.of(int.class, 0, long.class, 0L);

  /** The leaks that an assertion has reported, as {@link #live} lists them. */
  private static String reportedLeaks = "";

  private TestMachine() {}

  /** Functions of the double of libcuda that tests read. */
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

  /** Whether the GPUs are real. */
  public static boolean isReal() {
    return REAL;
  }

  /** Whether figures of speed mean something: not on doubles, also where they are the machine's. */
  public static boolean hasSpeed() {
    return REAL && cuda().gpus().stream().noneMatch(gpu -> gpu.name().startsWith(DOUBLE_NAME));
  }

  /** The reason why there are fewer GPUs; empty if there are enough. */
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

  /** Skips the test, with the reason, if there are fewer GPUs. */
  public static void assume(int gpus) {
    String whyNot = whyNot(gpus);
    assumeTrue(whyNot.isEmpty(), whyNot);
  }

  /** The reason why there are no doubles; empty if there are. */
  public static String whyNoDoubles() {
    return REAL ? "only the doubles do this" : Built.WHY_NOT;
  }

  /** Skips a test that works only on the doubles. */
  public static void assumeDoubles() {
    String whyNot = whyNoDoubles();
    assumeTrue(whyNot.isEmpty(), whyNot);
  }

  /**
   * Skips the test if the machine's own NCCL cannot connect the ranks.
   *
   * @param answer the answer of a rank that had to create a communicator
   */
  public static void assumeNotRefused(String answer) {
    assumeTrue(!REAL || !answer.startsWith("MISMATCH"), answer);
  }

  /** The folder of the doubles. */
  public static Path doubles() {
    assertThat(whyNoDoubles()).isEmpty();
    return Built.folder;
  }

  /** Whether this process was started to use GPUs. */
  public static boolean isForThisProcess() {
    return REAL || System.getProperty(FOLDER_PROPERTY) != null;
  }

  /** The property that makes a child process use the same GPUs. */
  public static String property() {
    return REAL ? "-D" + KIND_PROPERTY + "=machine" : "-D" + FOLDER_PROPERTY + "=" + doubles();
  }

  /** The options of this machine; with the doubles, their folder is on the library path. */
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

  /** The number of GPUs. */
  public static int count() {
    return cuda().gpus().size();
  }

  /** Opens a GPU for a test that can use any of them; tests share GPUs if there are few. */
  public static CudaDevice open(int number) {
    CudaLibrary cuda = cuda();
    return cuda.open(number % cuda.gpus().size());
  }

  /**
   * Functions of a double that only tests call. With real libraries they do nothing and their
   * counters are zero.
   *
   * @param library the name of its file
   */
  public static <T extends Library> T controls(String library, Class<T> functions) {
    if (REAL) {
      Object nothing =
          Proxy.newProxyInstance(
              functions.getClassLoader(),
              new Class<?>[] {functions},
              (proxy, method, arguments) -> NOTHING.get(method.getReturnType()));
      return functions.cast(nothing);
    }
    return Native.load(doubles().resolve(library).toString(), functions);
  }

  /** The violations of rules since the last call; only with doubles. */
  public static String violations() {
    byte[] text = new byte[TEXT_BYTES];
    int unused = controls(DoubleBuild.CUDA, Notes.class).cudaDoubleViolations(text, text.length);
    return Native.toString(text);
  }

  /** The handles that are not freed; only with doubles. */
  public static String live() {
    byte[] text = new byte[TEXT_BYTES];
    int unused = controls(DoubleBuild.CUDA, Notes.class).cudaDoubleLive(text, text.length);
    return Native.toString(text);
  }

  /**
   * Asserts that there are no violations and no leaked handles; only with doubles. Handles that an
   * earlier call has reported are not reported again, so that one leak fails one test.
   */
  public static synchronized void assertClean() {
    String leaked = live();
    boolean isReported = leaked.equals(reportedLeaks);
    reportedLeaks = leaked;
    assertThat(violations()).as("violations of rules").isEmpty();
    if (!isReported) {
      assertThat(leaked).as("leaked handles").isEmpty();
    }
  }
}
