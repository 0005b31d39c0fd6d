package io.weft.collectives.nccl;

import com.sun.jna.Pointer;
import io.weft.collectives.CollectiveException;
import io.weft.collectives.nccl.NcclFunctions.NcclVersionFunction;
import io.weft.collectives.nccl.NcclFunctions.NcclWindowFunctions;
import io.weft.device.NativeBinding;
import io.weft.device.UnavailableLibraryException;
import io.weft.device.cuda.CudaLibrary;
import io.weft.device.probe.LibraryLocation;
import io.weft.device.probe.ProbeOptions;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** NCCL in this process. The first caller loads it; it is never unloaded. Thread-safe. */
public final class NcclLibrary {
  /**
   * The first version with non-blocking communicators whose abort works, and with registered
   * memory.
   */
  static final int OLDEST = 21903;

  /** The first version with windows. */
  static final int WINDOWS = 22703;

  /** The first version that accepts several ranks on one GPU, if its environment says so. */
  static final int SHARES_GPUS = 23003;

  /** The variable of the environment that lets several ranks use one GPU. */
  static final String SHARING_SWITCH = "NCCL_MULTI_RANK_GPU_ENABLE";

  static final int SUCCESS = 0;
  static final int REMOTE_ERROR = 6;
  static final int IN_PROGRESS = 7;

  private static final Logger LOG = LoggerFactory.getLogger(NcclLibrary.class);

  private static NcclLibrary loaded;

  private final Path path;
  private final int version;

  private NcclLibrary(Path path, int version) {
    this.path = path;
    this.version = version;
  }

  /**
   * Loads NCCL: the named library, or the first in LD_LIBRARY_PATH, the usual folders and Python's
   * packages.
   *
   * @throws UnavailableLibraryException with the reason: no library, no JNA, an old version, or
   *     another driver than that of the process
   */
  public static synchronized NcclLibrary load(ProbeOptions options) {
    if (loaded == null) {
      CudaLibrary.obstacleForNccl()
          .ifPresent(
              reason -> {
                throw new UnavailableLibraryException(reason);
              });
      LibraryLocation location = LibraryLocation.ofNccl(options);
      Path path =
          location.path().orElseThrow(() -> new UnavailableLibraryException(location.missing()));
      NativeBinding.bind(path, NcclVersionFunction.class);
      int version = supportedVersion(path);
      NativeBinding.bind(path, NcclFunctions.class);
      if (version >= WINDOWS) {
        NativeBinding.bind(path, NcclWindowFunctions.class);
      }
      loaded = new NcclLibrary(path, version);
      LOG.info("{} is loaded", loaded);
    }
    return loaded;
  }

  /** The result of {@link #load}, for callers that run after it. */
  static synchronized NcclLibrary loaded() {
    if (loaded == null) {
      throw new IllegalStateException("NCCL was not loaded");
    }
    return loaded;
  }

  private static int supportedVersion(Path path) {
    int[] version = new int[1];
    NcclVersionFunction.ncclGetVersion(version);
    if (version[0] < OLDEST) {
      throw new UnavailableLibraryException(
          "NCCL "
              + describe(version[0])
              + " in "
              + path
              + " is too old: Weft needs "
              + describe(OLDEST)
              + " or newer");
    }
    return version[0];
  }

  /** The text of a version number of NCCL: 22803 is 2.28.3, and 2804 is 2.8.4. */
  static String describe(int version) {
    int major = version < 10_000 ? version / 1000 : version / 10_000;
    int rest = version < 10_000 ? version % 1000 : version % 10_000;
    return major + "." + rest / 100 + "." + rest % 100;
  }

  /** The version, such as "2.28.3". */
  public String version() {
    return describe(version);
  }

  int versionNumber() {
    return version;
  }

  /** Why device memory cannot be registered as windows; empty if it can. */
  public Optional<String> whyNoWindows() {
    return version >= WINDOWS
        ? Optional.empty()
        : Optional.of(
            "NCCL " + version() + " has no windows, which came with " + describe(WINDOWS));
  }

  /**
   * Whether it takes several ranks on one GPU.
   *
   * @param environment of this process, which NCCL reads too
   */
  public boolean sharesGpus(Map<String, String> environment) {
    return sharesGpus(version, environment);
  }

  static boolean sharesGpus(int version, Map<String, String> environment) {
    return version >= SHARES_GPUS && "1".equals(environment.get(SHARING_SWITCH));
  }

  /** The exception for a failed call, with NCCL's own description. */
  static CollectiveException failure(int result, long comm, String what) {
    return new CollectiveException(
        result == REMOTE_ERROR ? CollectiveException.Kind.DEAD : CollectiveException.Kind.IO,
        List.of(),
        what
            + " failed in NCCL: "
            + text(NcclFunctions.ncclGetErrorString(result))
            + " ("
            + text(NcclFunctions.ncclGetLastError(comm))
            + ")");
  }

  private static String text(long address) {
    return address == 0 ? "" : new Pointer(address).getString(0).strip();
  }

  @Override
  public String toString() {
    return "NCCL " + version() + " in " + path;
  }
}
