package io.weft.examples.side;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.attribute.BasicFileAttributes;

/** A temporary folder that everything of a run lives in. Deleted on close, links not followed. */
public final class WorkFolder implements AutoCloseable {
  private final Path path;
  private final boolean keep;

  private WorkFolder(Path path, boolean keep) {
    this.path = path;
    this.keep = keep;
  }

  /**
   * Creates a folder in the system's temporary folder.
   *
   * @param prefix how its name begins
   * @param keep whether close leaves it, for a look at the logs
   */
  public static WorkFolder create(String prefix, boolean keep) throws IOException {
    return new WorkFolder(Files.createTempDirectory(prefix).toRealPath(), keep);
  }

  /** Creates a folder in another one, deleted on close. */
  public static WorkFolder createIn(Path parent, String prefix) throws IOException {
    return new WorkFolder(Files.createTempDirectory(parent, prefix).toRealPath(), false);
  }

  /** The folder. */
  public Path path() {
    return path;
  }

  /** A folder in it, created if it is not there. */
  public Path folder(String name) throws IOException {
    return Files.createDirectories(path.resolve(name));
  }

  @Override
  public void close() {
    if (!keep) {
      try {
        delete(path);
      } catch (IOException e) {
        throw new UncheckedIOException("cannot delete the temporary folder " + path, e);
      }
    }
  }

  /** Deletes a file or a folder with what is in it; what vanishes meanwhile is no error. */
  public static void delete(Path root) throws IOException {
    if (!Files.exists(root, java.nio.file.LinkOption.NOFOLLOW_LINKS)) {
      return;
    }
    Files.walkFileTree(
        root,
        new SimpleFileVisitor<>() {
          @Override
          public FileVisitResult visitFile(Path file, BasicFileAttributes attributes)
              throws IOException {
            Files.deleteIfExists(file);
            return FileVisitResult.CONTINUE;
          }

          @Override
          public FileVisitResult visitFileFailed(Path file, IOException e) throws IOException {
            if (e instanceof NoSuchFileException) {
              return FileVisitResult.CONTINUE;
            }
            throw e;
          }

          @Override
          public FileVisitResult postVisitDirectory(Path folder, IOException e) throws IOException {
            if (e != null) {
              throw e;
            }
            Files.deleteIfExists(folder);
            return FileVisitResult.CONTINUE;
          }
        });
  }
}
