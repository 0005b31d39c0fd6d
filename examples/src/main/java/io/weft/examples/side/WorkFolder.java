package io.weft.examples.side;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.attribute.BasicFileAttributes;
import picocli.CommandLine.Option;

/** A temporary folder for all files of a run. Close deletes it and does not follow links. */
public final class WorkFolder implements AutoCloseable {
  private static final Path SHARED_MEMORY = Path.of("/dev/shm");

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
   * @param keep whether close leaves it, with the logs
   */
  public static WorkFolder create(String prefix, boolean keep) throws IOException {
    return new WorkFolder(Files.createTempDirectory(prefix).toRealPath(), keep);
  }

  /** Creates a folder in another one, deleted on close. */
  public static WorkFolder createIn(Path parent, String prefix) throws IOException {
    return new WorkFolder(Files.createTempDirectory(parent, prefix).toRealPath(), false);
  }

  /** Creates a folder in shared memory; where there is none, in the temporary folder. */
  public static WorkFolder createInSharedMemory(String prefix) throws IOException {
    return Files.isWritable(SHARED_MEMORY)
        ? createIn(SHARED_MEMORY, prefix)
        : create(prefix + "memory-", false);
  }

  /** Returns its path. */
  public Path path() {
    return path;
  }

  /** Returns a folder in it and creates it if it is missing. */
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

  /** Deletes a file or a folder and its content. A file that vanishes meanwhile is no error. */
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

  /** The option of a command that works in a temporary folder, as a mixin of picocli. */
  public static final class KeepOption {
    @Option(names = "--keep", description = "Keep the temporary folder with the logs")
    private boolean keep;

    /** Whether the folder stays. */
    public boolean keep() {
      return keep;
    }
  }
}
