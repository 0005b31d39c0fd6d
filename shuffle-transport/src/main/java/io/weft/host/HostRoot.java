package io.weft.host;

import io.weft.device.probe.Capabilities;
import io.weft.device.probe.CapabilityProbe;
import io.weft.device.probe.Choice;
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
 * The folder of this host that executors put their own into.
 *
 * @param path an existing folder that this process may write to
 * @param sharedMemory whether it is in memory rather than on a disk
 * @param fallbackReason why it is not the one that was asked for, or not shared memory; empty when
 *     the first choice was taken
 */
public record HostRoot(Path path, boolean sharedMemory, Optional<String> fallbackReason) {
  private static final Set<String> MEMORY_FILE_SYSTEMS = Set.of("tmpfs", "ramfs", "hugetlbfs");

  public HostRoot {
    Objects.requireNonNull(path, "path");
    Objects.requireNonNull(fallbackReason, "fallbackReason");
  }

  /**
   * Takes the first usable one of: the requested folder (/dev/shm when there is none), then the
   * local folders.
   *
   * @param requested null or a folder that the user named
   * @param minBytes least usable bytes that a folder must have to be taken; local folders are taken
   *     with less
   * @throws IOException when no folder can be used; the message says why for each
   */
  public static HostRoot choose(Path requested, List<Path> localDirs, long minBytes)
      throws IOException {
    return choose(CapabilityProbe.thisMachine(), requested, localDirs, minBytes);
  }

  /**
   * The same by what is known of a machine: where it has no shared memory, none is tried.
   *
   * @param machine what it can do
   */
  public static HostRoot choose(
      Capabilities machine, Path requested, List<Path> localDirs, long minBytes)
      throws IOException {
    Path first = requested == null ? machine.sharedFolder() : requested;
    Choice within = machine.withinHost();
    boolean lacking = requested == null && !within.isPreferred();
    // What is wrong with the folder itself says more than that there is no shared memory.
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
    if (!Files.isDirectory(folder)) {
      return Optional.of(folder + " does not exist");
    }
    if (!Files.isWritable(folder)) {
      return Optional.of(folder + " cannot be written to");
    }
    long usable = folder.toFile().getUsableSpace();
    if (usable < minBytes) {
      return Optional.of(folder + " has " + usable + " bytes left, fewer than " + minBytes);
    }
    return OwnedFolders.objection(folder.resolve(userFolderName(user)));
  }

  private static boolean isMemory(Path folder) {
    try {
      // By what it is, not by its name: in a container /dev/shm may be a folder on a disk.
      return MEMORY_FILE_SYSTEMS.contains(Files.getFileStore(folder).type());
    } catch (IOException e) {
      return false;
    }
  }

  /** The folder of this user's applications; made when the first executor comes. */
  public Path userFolder() {
    return path.resolve(userFolderName(userName()));
  }

  static String userFolderName(String user) {
    return "weft-" + Names.sanitized(user);
  }

  /** The user's name; where the system knows none, as in some containers, the number. */
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
