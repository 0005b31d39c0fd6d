package io.weft.device.probe;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Stream;

/**
 * The place of a library on the machine. Immutable.
 *
 * @param path the file, if there is one
 * @param missing the reason why there is none; empty if there is one
 */
public record LibraryLocation(Optional<Path> path, String missing) {
  private static final String CUDA = "libcuda.so.1";
  private static final String NCCL = "libnccl.so.2";

  /** The library of the NVIDIA driver: the first one that is found. */
  public static LibraryLocation ofCuda(ProbeOptions options) {
    return in(new LibraryFolders(options), CUDA);
  }

  /**
   * All libraries of the NVIDIA driver, in the order in which to try them, each file once. A folder
   * may contain a library of another driver than the kernel's.
   */
  public static List<Path> allOfCuda(ProbeOptions options) {
    return new LibraryFolders(options).findAll(CUDA);
  }

  /** NCCL: the configured file, else the first one that is found. */
  public static LibraryLocation ofNccl(ProbeOptions options) {
    if (options.ncclLibrary().isPresent()) {
      Path named = options.ncclLibrary().get();
      return Files.isReadable(named)
          ? new LibraryLocation(Optional.of(named), "")
          : missing("the library " + named + " of the settings does not exist or is not readable");
    }
    return in(LibraryFolders.withPython(options), NCCL);
  }

  private static LibraryLocation in(LibraryFolders folders, String library) {
    Optional<Path> found = folders.find(library);
    return found.isPresent()
        ? new LibraryLocation(found, "")
        : missing(library + " is not in " + folders.describe());
  }

  private static LibraryLocation missing(String why) {
    return new LibraryLocation(Optional.empty(), why);
  }

  /**
   * The folders that are searched for shared libraries. The loader's path is first, then the usual
   * folders and, for libraries of pip, Python's packages. On WSL, only the driver of its own folder
   * works. The compat folder is last: its driver runs only beside an older one in the kernel.
   */
  static final class LibraryFolders {
    private static final List<String> USUAL =
        List.of(
            "/usr/local/cuda/lib64",
            "/usr/lib/wsl/lib",
            "/usr/lib/x86_64-linux-gnu",
            "/usr/lib/aarch64-linux-gnu",
            "/usr/lib64",
            "/usr/lib",
            "/usr/local/lib",
            "/usr/local/nvidia/lib64",
            "/usr/local/cuda/compat");

    /** The folder of NCCL within Python's packages, used by NVIDIA's package. */
    private static final String IN_PACKAGES = "nvidia/nccl/lib";

    private final List<Path> folders = new ArrayList<>();
    private final boolean python;

    LibraryFolders(ProbeOptions options) {
      this(options, false);
    }

    private LibraryFolders(ProbeOptions options, boolean python) {
      this.python = python;
      String path = options.environment().getOrDefault("LD_LIBRARY_PATH", "");
      for (String folder : path.split(":", -1)) {
        if (folder.startsWith("/")) {
          folders.add(options.at(folder));
        }
      }
      USUAL.forEach(folder -> folders.add(options.at(folder)));
      if (python) {
        addPython(options);
      }
    }

    /** Includes the packages of the active environment, the user and the system. */
    static LibraryFolders withPython(ProbeOptions options) {
      return new LibraryFolders(options, true);
    }

    private void addPython(ProbeOptions options) {
      for (String variable : List.of("VIRTUAL_ENV", "CONDA_PREFIX", "HOME")) {
        String home = options.environment().getOrDefault(variable, "");
        if (home.startsWith("/")) {
          addVersions(options.at(variable.equals("HOME") ? home + "/.local/lib" : home + "/lib"));
        }
      }
      addVersions(options.at("/usr/local/lib"));
      addVersions(options.at("/usr/lib"));
    }

    private void addVersions(Path parent) {
      for (String version : HostProbe.namesOrNone(parent)) {
        if (version.startsWith("python3")) {
          for (String packages : List.of("site-packages", "dist-packages")) {
            folders.add(parent.resolve(version).resolve(packages).resolve(IN_PACKAGES));
          }
        }
      }
    }

    Optional<Path> find(String library) {
      return files(library).findFirst();
    }

    /** All files of this name; of several links to one file only the first. */
    List<Path> findAll(String library) {
      Map<Path, Path> byFile = new LinkedHashMap<>();
      files(library).forEach(path -> byFile.putIfAbsent(real(path), path));
      return List.copyOf(byFile.values());
    }

    private Stream<Path> files(String library) {
      return folders.stream().map(folder -> folder.resolve(library)).filter(Files::isReadable);
    }

    private static Path real(Path path) {
      try {
        return path.toRealPath();
      } catch (IOException e) {
        return path;
      }
    }

    /** A text for messages. */
    String describe() {
      return python
          ? "LD_LIBRARY_PATH, " + USUAL.size() + " usual folders and Python's packages"
          : "LD_LIBRARY_PATH and " + USUAL.size() + " usual folders";
    }
  }
}
