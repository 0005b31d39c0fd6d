package io.weft.shuffle.store;

import io.weft.device.probe.Capabilities;
import io.weft.device.probe.CapabilityProbe;
import io.weft.device.probe.Choice;
import io.weft.memory.Bytes;
import io.weft.shuffle.store.PrivateFolders.FolderNames;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;

/**
 * The folder of this host that contains the folders of executors.
 *
 * @param path an existing folder that this process may write to
 * @param sharedMemory whether the folder is in memory, not on a disk
 * @param fallbackReason why it is not the requested folder, or not shared memory; empty if the
 *     first choice was taken
 */
public record HostRoot(Path path, boolean sharedMemory, Optional<String> fallbackReason) {
  private static final Set<String> MEMORY_FILE_SYSTEMS = Set.of("tmpfs", "ramfs", "hugetlbfs");

  public HostRoot {
    Objects.requireNonNull(path, "path");
    Objects.requireNonNull(fallbackReason, "fallbackReason");
  }

  /**
   * Chooses the first usable folder: the requested folder (default /dev/shm), then the local
   * folders.
   *
   * @param requested folder that the user set, or null
   * @param minBytes usable bytes that the first folder must have; local folders may have less
   * @throws IOException if no folder can be used; the message has the reason for each
   */
  public static HostRoot choose(Path requested, List<Path> localDirs, long minBytes)
      throws IOException {
    return choose(CapabilityProbe.thisMachine(), requested, localDirs, minBytes);
  }

  /**
   * As above, for a machine with known capabilities. Skips shared memory if the machine has none.
   *
   * @param machine its capabilities
   */
  public static HostRoot choose(
      Capabilities machine, Path requested, List<Path> localDirs, long minBytes)
      throws IOException {
    Path first = requested == null ? machine.sharedFolder() : requested;
    Choice within = machine.withinHost();
    boolean lacking = requested == null && !within.isPreferred();
    // A problem of the folder itself is a better reason than missing shared memory.
    Optional<String> objection =
        objection(first, minBytes, userName())
            .or(() -> lacking ? Optional.of(within.reason()) : Optional.empty());
    return choose(first, objection, localDirs, userName());
  }

  static HostRoot choose(Path first, List<Path> localDirs, long minBytes, String user)
      throws IOException {
    return choose(first, objection(first, minBytes, user), localDirs, user);
  }

  private static HostRoot choose(
      Path first, Optional<String> objection, List<Path> localDirs, String user)
      throws IOException {
    if (objection.isEmpty()) {
      return new HostRoot(first, isMemory(first), Optional.empty());
    }
    List<String> objections = new ArrayList<>();
    objections.add(objection.get());
    for (Path local : localDirs) {
      Optional<String> other = objection(local, 0, user);
      if (other.isEmpty()) {
        return new HostRoot(local, isMemory(local), objection);
      }
      objections.add(other.get());
    }
    throw new IOException(
        "no folder for shared memory or in its place: " + String.join("; ", objections));
  }

  private static Optional<String> objection(Path folder, long minBytes, String user) {
    if (!Files.exists(folder)) {
      return Optional.of(folder + " does not exist");
    }
    if (!Files.isDirectory(folder)) {
      return Optional.of(folder + " is not a folder");
    }
    if (!Files.isWritable(folder)) {
      return Optional.of(folder + " cannot be written to");
    }
    long usable = folder.toFile().getUsableSpace();
    if (usable < minBytes) {
      return Optional.of(
          "%s has %s left, less than %s"
              .formatted(folder, Bytes.text(usable), Bytes.text(minBytes)));
    }
    return PrivateFolders.objection(folder.resolve(userFolderName(user)));
  }

  /** Whether a folder is in memory, not on a disk; false if that is unknown. */
  public static boolean isMemory(Path folder) {
    try {
      // Check the file system, not the name: in a container /dev/shm may be on a disk.
      return MEMORY_FILE_SYSTEMS.contains(Files.getFileStore(folder).type());
    } catch (IOException e) {
      return false;
    }
  }

  /** The folder of this user's applications. The first executor creates it. */
  public Path userFolder() {
    return path.resolve(userFolderName(userName()));
  }

  static String userFolderName(String user) {
    return "weft-" + FolderNames.sanitized(user);
  }

  /** The user's name, or the user id if the system has no name, as in some containers. */
  static String userName() {
    String name = System.getProperty("user.name", "?");
    if (!name.isBlank() && !name.equals("?")) {
      return name;
    }
    try {
      return "uid"
          + Files.getAttribute(Path.of("/proc/self"), "unix:uid", LinkOption.NOFOLLOW_LINKS);
    } catch (IOException | UnsupportedOperationException e) {
      return "unknown";
    }
  }
}
