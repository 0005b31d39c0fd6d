package io.weft.examples.side;

import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** Looks for what an application should have removed from shared memory by itself. */
public final class Leftovers {
  private static final Path SHARED_MEMORY = Path.of("/dev/shm");

  private Leftovers() {}

  /** The folders of an application that has ended. */
  public static List<Path> find(String applicationId) throws IOException {
    return find(SHARED_MEMORY, applicationId);
  }

  static List<Path> find(Path sharedMemory, String applicationId) throws IOException {
    List<Path> found = new ArrayList<>();
    if (Files.isDirectory(sharedMemory)) {
      try (DirectoryStream<Path> users = Files.newDirectoryStream(sharedMemory, "weft-*")) {
        for (Path user : users) {
          addApplication(user, applicationId, found);
        }
      }
    }
    return found;
  }

  private static void addApplication(Path user, String applicationId, List<Path> found)
      throws IOException {
    if (!Files.isReadable(user)) {
      return;
    }
    try (DirectoryStream<Path> applications =
        Files.newDirectoryStream(user, path -> startsWith(path, applicationId + "-"))) {
      applications.forEach(found::add);
    }
  }

  private static boolean startsWith(Path path, String prefix) {
    return path.getFileName().toString().startsWith(prefix);
  }
}
