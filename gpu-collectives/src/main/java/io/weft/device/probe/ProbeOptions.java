package io.weft.device.probe;

import java.nio.file.Path;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;

/**
 * Where the probe searches.
 *
 * @param root the root of the file system; tests use another one
 * @param sharedFolder the folder for segments, on the real file system
 * @param ncclLibrary the library in the user's settings; empty to search for it
 * @param environment variables of the process
 */
public record ProbeOptions(
    Path root, Path sharedFolder, Optional<Path> ncclLibrary, Map<String, String> environment) {
  /** The property for the root of the file system with drivers and libraries. */
  public static final String ROOT_PROPERTY = "weft.probe.root";

  public ProbeOptions {
    Objects.requireNonNull(root, "root");
    Objects.requireNonNull(sharedFolder, "sharedFolder");
    environment = Map.copyOf(environment);
  }

  /**
   * Options for this machine and process, with /dev/shm. The system property {@value
   * #ROOT_PROPERTY} sets another root, for a container that sees the files of its host elsewhere,
   * or for a test.
   */
  public static ProbeOptions defaults() {
    return new ProbeOptions(
        Path.of(System.getProperty(ROOT_PROPERTY, "/")),
        Path.of("/dev/shm"),
        Optional.empty(),
        System.getenv());
  }

  public ProbeOptions withRoot(Path other) {
    return new ProbeOptions(other, sharedFolder, ncclLibrary, environment);
  }

  public ProbeOptions withSharedFolder(Path folder) {
    return new ProbeOptions(root, folder, ncclLibrary, environment);
  }

  public ProbeOptions withNcclLibrary(Path library) {
    return new ProbeOptions(root, sharedFolder, Optional.of(library), environment);
  }

  public ProbeOptions withEnvironment(Map<String, String> variables) {
    return new ProbeOptions(root, sharedFolder, ncclLibrary, variables);
  }

  /** A path of the machine, below the root. */
  Path at(String absolute) {
    return root.resolve(absolute.substring(1));
  }
}
