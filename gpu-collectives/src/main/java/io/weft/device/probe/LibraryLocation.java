package io.weft.device.probe;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;

/**
 * The place of a library on the machine. Immutable.
 *
 * @param path the file, if there is one
 * @param missing the reason why there is none; empty if there is one
 */
public record LibraryLocation(Optional<Path> path, String missing) {
  private static final String CUDA = "libcuda.so.1";
  private static final String NCCL = "libnccl.so.2";

  /** The library of the NVIDIA driver. */
  public static LibraryLocation ofCuda(ProbeOptions options) {
    return in(new LibraryFolders(options), CUDA);
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
}
