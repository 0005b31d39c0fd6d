package io.weft.host;

import java.io.IOException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/** Folders and files that only their owner may enter, from the moment they exist. */
final class OwnedFolders {
  static final FileAttribute<Set<PosixFilePermission>> FOLDER =
      PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------"));
  static final FileAttribute<Set<PosixFilePermission>> FILE =
      PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------"));

  // Parts of the mode as the system gives it.
  private static final int FILE_TYPE = 0170000;
  private static final int FOLDER_TYPE = 0040000;
  private static final int OTHERS = 0077;

  private OwnedFolders() {}

  /**
   * Makes a folder of mode 0700 or takes the one that is there, if it is safe: anybody may write to
   * /dev/shm, so another user may have put a folder or a link of that name there.
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

  /** Why a folder of ours must not be used; empty when it may, or when it does not exist. */
  static Optional<String> objection(Path folder) {
    try {
      return objectionToExisting(folder);
    } catch (NoSuchFileException e) {
      return Optional.empty();
    } catch (IOException e) {
      return Optional.of(folder + " cannot be looked at: " + e);
    }
  }

  private static Optional<String> objectionToExisting(Path folder) throws IOException {
    // One look: a second one could find the folder gone.
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
          folder + " belongs to user number " + owner + ", not to us (" + self + ")");
    }
    if ((mode & OTHERS) != 0) {
      return Optional.of(folder + " is open to other users; set its mode to 0700 or remove it");
    }
    return Optional.empty();
  }
}
