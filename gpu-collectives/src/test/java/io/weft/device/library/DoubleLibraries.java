package io.weft.device.library;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.jna.Library;
import com.sun.jna.Native;
import com.sun.jna.Pointer;
import io.weft.device.cuda.CudaLibrary;
import io.weft.device.probe.ProbeOptions;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * The test doubles of libcuda and libnccl: built by gcc once for each test process, under the names
 * of the real libraries in a folder of their own.
 */
public final class DoubleLibraries {
  /** Names the folder to a child process, which builds nothing. */
  public static final String FOLDER_PROPERTY = "weft.test.gpuDoubles";

  private static final Path SOURCES = Path.of("src", "test", "native");
  private static final String COMPILER = System.getenv().getOrDefault("CC", "gcc");
  private static final Duration COMPILER_PATIENCE = Duration.ofSeconds(120);
  private static final int TEXT_BYTES = 16_384;

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

    void cudaDoubleMulticast(int devices);

    void cudaDoubleComputeCapability(int major);

    void cudaDoubleFailBindings(int bindings);

    void cudaDoubleFailUnbindings(int bindings);

    void cudaDoubleDescriptors(int offered);

    void cudaDoubleHoldKernel(int device, String name);

    int cudaDoubleRuns(int device, String name);

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
    private static Path folder;

    private static String tryBuild() {
      try {
        String given = System.getProperty(FOLDER_PROPERTY);
        folder = given == null ? build() : Path.of(given);
        return "";
      } catch (IOException e) {
        return "the doubles of libcuda and libnccl cannot be built: " + e.getMessage();
      }
    }

    private static Path build() throws IOException {
      Path target =
          Files.createDirectories(
                  Path.of("target", "gpu-doubles", "" + ProcessHandle.current().pid()))
              .toAbsolutePath();
      compile(List.of(), "cuda_double.c", target.resolve("libcuda.so.1"), List.of());
      compile(
          List.of("-DWEFT_DOUBLE_WITHOUT_MULTICAST"),
          "cuda_double.c",
          Files.createDirectories(target.resolve("without-multicast")).resolve("libcuda.so.1"),
          List.of());
      compileNccl(target, ".", List.of());
      compileNccl(target, "old", List.of("-DWEFT_DOUBLE_OLD", "-Wno-unused-function"));
      compileNccl(
          target,
          "without-windows",
          List.of("-DWEFT_DOUBLE_WITHOUT_WINDOWS", "-Wno-unused-function"));
      compileNccl(target, "without-revoke", List.of("-DWEFT_DOUBLE_WITHOUT_REVOKE"));
      return target;
    }

    /** Older versions lie in folders of their own, with the same libcuda. */
    private static void compileNccl(Path target, String version, List<String> flags)
        throws IOException {
      Path folder = Files.createDirectories(target.resolve(version));
      Path cuda = folder.resolve("libcuda.so.1");
      if (!Files.exists(cuda)) {
        Files.createSymbolicLink(cuda, Path.of("..", "libcuda.so.1"));
      }
      List<String> withCuda =
          List.of("-L" + target, "-l:libcuda.so.1", "-lrt", "-Wl,-rpath," + target);
      compile(
          flags,
          "nccl_double.c",
          target.resolve(version).normalize().resolve("libnccl.so.2"),
          withCuda);
    }

    private static void compile(
        List<String> flags, String source, Path library, List<String> libraries)
        throws IOException {
      List<String> command = new ArrayList<>(List.of(COMPILER, "-std=gnu11", "-O1", "-g"));
      command.addAll(
          List.of("-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-Wl,-Bsymbolic", "-pthread"));
      command.addAll(flags);
      command.addAll(List.of("-Wl,-soname," + library.getFileName(), "-o", library.toString()));
      command.add(SOURCES.resolve(source).toString());
      command.addAll(libraries);
      ChildProcess.Outcome gcc = ChildProcess.run(command, COMPILER_PATIENCE);
      if (!gcc.isWell()) {
        throw new AssertionError(COMPILER + " does not take " + source + ": " + gcc);
      }
    }
  }

  /** Why they cannot be built here; empty where they can. */
  public static String whyNot() {
    return Built.WHY_NOT;
  }

  /** The folder with the doubles, for tests that say {@link UsesDoubles}. */
  public static Path folder() {
    assertThat(Built.WHY_NOT).isEmpty();
    return Built.folder;
  }

  /** This machine as a process sees it whose library path leads to the doubles. */
  public static ProbeOptions options() {
    Map<String, String> environment = new HashMap<>(System.getenv());
    environment.keySet().removeIf(name -> !name.startsWith("NCCL_"));
    environment.put("LD_LIBRARY_PATH", folder().toString());
    return ProbeOptions.defaults().withEnvironment(environment);
  }

  /** The double of libcuda as the driver of this process. */
  public static CudaLibrary cuda() {
    return CudaLibrary.load(options());
  }

  public static CudaControls cudaControls() {
    return Native.load(folder().resolve("libcuda.so.1").toString(), CudaControls.class);
  }

  public static NcclControls ncclControls() {
    return Native.load(folder().resolve("libnccl.so.2").toString(), NcclControls.class);
  }

  /** The rules that were broken since this was asked last. */
  public static String violations() {
    byte[] text = new byte[TEXT_BYTES];
    cudaControls().cudaDoubleViolations(text, text.length);
    return Native.toString(text);
  }

  /** The handles that have not been given back. */
  public static String live() {
    byte[] text = new byte[TEXT_BYTES];
    cudaControls().cudaDoubleLive(text, text.length);
    return Native.toString(text);
  }

  /** No rule was broken and nothing was left behind. */
  public static void assertClean() {
    assertThat(violations()).isEmpty();
    assertThat(live()).isEmpty();
  }
}
