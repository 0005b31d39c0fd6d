package io.weft.shuffle.store;

import java.io.IOException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.SecureRandom;
import java.util.HexFormat;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/** Creates folders and files that only their owner can access, and checks existing ones. */
public final class PrivateFolders {
  static final FileAttribute<Set<PosixFilePermission>> FOLDER =
      PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------"));
  static final FileAttribute<Set<PosixFilePermission>> FILE =
      PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------"));

  // Parts of a POSIX file mode.
  private static final int FILE_TYPE = 0170000;
  private static final int FOLDER_TYPE = 0040000;
  private static final int OTHERS = 0077;

  private PrivateFolders() {}

  /**
   * Creates a folder of mode 0700, or accepts an existing one that is safe. Every user can write to
   * /dev/shm, so another user may have created a folder or link of that name.
   */
  static void ensure(Path folder) throws IOException {
    try {
      Files.createDirectory(folder, FOLDER);
    } catch (FileAlreadyExistsException e) {
      Optional<String> objection = objection(folder);
      if (objection.isPresent()) {
        throw new IOException(objection.get(), e);
      }
    }
  }

  /** The reason why an existing folder is not safe; empty if it is safe or does not exist. */
  public static Optional<String> objection(Path folder) {
    try {
      return objectionToExisting(folder);
    } catch (NoSuchFileException e) {
      return Optional.empty();
    } catch (IOException e) {
      return Optional.of(folder + " cannot be read: " + e);
    }
  }

  private static Optional<String> objectionToExisting(Path folder) throws IOException {
    // Read all attributes at once: before a second read the folder may be removed.
    Map<String, Object> found =
        Files.readAttributes(folder, "unix:mode,uid", LinkOption.NOFOLLOW_LINKS);
    int mode = (Integer) found.get("mode");
    Object owner = found.get("uid");
    if ((mode & FILE_TYPE) != FOLDER_TYPE) {
      return Optional.of(folder + " is not a folder; remove it or name another one");
    }
    Object self = Files.getAttribute(Path.of("/proc/self"), "unix:uid");
    if (!owner.equals(self)) {
      return Optional.of(
          folder + " belongs to user number " + owner + ", not to this process (" + self + ")");
    }
    if ((mode & OTHERS) != 0) {
      return Optional.of(folder + " is open to other users; set its mode to 0700 or remove it");
    }
    return Optional.empty();
  }

  /** Names of files and folders, with their random parts. */
  static final class FolderNames {
    static final String ALIVE = "alive";
    static final String TOKEN = "token";

    /** The file in the folder of an executor whose outputs others may adopt when it dies. */
    static final String ADOPTABLE = "adoptable";

    static final String LEASE_PREFIX = "lease-";

    /** Prefix of the file that a reader with leases locks. */
    static final String READER_PREFIX = "reader-";

    /** Prefix of an incomplete folder or lease. Sweeps ignore it unless it is old. */
    static final String STARTING_PREFIX = ".starting-";

    private static final SecureRandom RANDOM = new SecureRandom();

    private FolderNames() {}

    /** Makes a name safe for files: replaces all but letters, digits, '.', '_' and '-' by '_'. */
    static String sanitized(String name) {
      String safe = name.replaceAll("[^A-Za-z0-9._-]", "_");
      return safe.startsWith(".") ? "_" + safe.substring(1) : safe;
    }

    static String leasePrefix(int shuffleId) {
      return LEASE_PREFIX + shuffleId + "-";
    }

    static String randomHex(int characters) {
      byte[] bytes = new byte[(characters + 1) / 2];
      RANDOM.nextBytes(bytes);
      return HexFormat.of().formatHex(bytes).substring(0, characters);
    }
  }
}
