package io.weft.host;

import java.io.IOException;
import java.nio.file.DirectoryNotEmptyException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;

/** Removes an executor's folder with all files that belong to it. */
final class ExecutorFiles {
  /** The name prefix of link targets that belong to Weft. Other targets are not removed. */
  private static final String OURS = "weft-";

  private static final int ATTEMPTS = 10;

  private ExecutorFiles() {}

  /**
   * Removes a folder. The file {@code alive} goes last, so that the next sweep can finish an
   * interrupted removal.
   */
  static void remove(Path folder) throws IOException {
    for (int attempt = 1; ; attempt++) {
      try {
        removeOnce(folder);
        return;
      } catch (DirectoryNotEmptyException e) {
        // A reader has just created a lease.
        if (attempt == ATTEMPTS) {
          throw e;
        }
      }
    }
  }

  private static void removeOnce(Path folder) throws IOException {
    for (Path entry : FolderSweep.entries(folder)) {
      if (Files.isSymbolicLink(entry)) {
        removeTarget(entry);
      }
      if (Files.isDirectory(entry, LinkOption.NOFOLLOW_LINKS)) {
        removeTree(entry);
      } else if (!entry.endsWith(Names.ALIVE)) {
        Files.deleteIfExists(entry);
      }
    }
    Files.deleteIfExists(folder.resolve(Names.ALIVE));
    Files.deleteIfExists(folder);
  }

  /** Removes a folder tree. Does not follow links. */
  static void removeTree(Path folder) throws IOException {
    for (Path entry : FolderSweep.entries(folder)) {
      if (Files.isDirectory(entry, LinkOption.NOFOLLOW_LINKS)) {
        removeTree(entry);
      } else {
        Files.deleteIfExists(entry);
      }
    }
    Files.deleteIfExists(folder);
  }

  private static void removeTarget(Path link) throws IOException {
    Path target;
    try {
      target = Files.readSymbolicLink(link);
    } catch (NoSuchFileException e) {
      return;
    }
    if (isOurs(target) && Files.isDirectory(target, LinkOption.NOFOLLOW_LINKS)) {
      removeTree(target);
      return;
    }
    Path parent = target.getParent();
    if (!isOurs(target) || parent == null || !isOurs(parent)) {
      return;
    }
    if (Files.isRegularFile(target, LinkOption.NOFOLLOW_LINKS)) {
      Files.deleteIfExists(target);
    }
    FolderSweep.removeIfEmpty(parent);
  }

  private static boolean isOurs(Path path) {
    return path.isAbsolute() && path.getFileName().toString().startsWith(OURS);
  }
}
