package io.weft.tests.support;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.ArrayList;
import java.util.List;

/** Reads and deletes folders in which other processes create and delete files. */
public final class Folders {
  private Folders() {}

  /**
   * Returns all files, links and folders below a folder; entries that vanish meanwhile are left
   * out.
   */
  public static List<Path> tree(Path folder) {
    List<Path> found = new ArrayList<>();
    try {
      Files.walkFileTree(folder, new Collector(folder, found));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return found;
  }

  /**
   * Deletes a folder with its content, including links but not their targets; does nothing if it
   * does not exist.
   */
  public static void delete(Path folder) {
    List<Path> entries = tree(folder);
    for (int i = entries.size() - 1; i >= 0; i--) {
      deleteOne(entries.get(i));
    }
    deleteOne(folder);
  }

  /** Writes a file until the file system has no room for another byte. */
  public static void fill(Path file) {
    ByteBuffer zeros = ByteBuffer.allocate(1 << 20);
    try (FileChannel channel =
        FileChannel.open(file, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE)) {
      while (true) {
        channel.write(zeros.clear());
      }
    } catch (IOException e) {
      if (!String.valueOf(e.getMessage()).contains("No space left")) {
        throw new UncheckedIOException(e);
      }
    }
  }

  private static void deleteOne(Path path) {
    try {
      Files.deleteIfExists(path);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static final class Collector extends SimpleFileVisitor<Path> {
    private final Path root;
    private final List<Path> found;

    Collector(Path root, List<Path> found) {
      this.root = root;
      this.found = found;
    }

    @Override
    public FileVisitResult preVisitDirectory(Path folder, BasicFileAttributes attributes) {
      if (!folder.equals(root)) {
        found.add(folder);
      }
      return FileVisitResult.CONTINUE;
    }

    @Override
    public FileVisitResult visitFile(Path file, BasicFileAttributes attributes) {
      found.add(file);
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
      if (e == null || e instanceof NoSuchFileException) {
        return FileVisitResult.CONTINUE;
      }
      throw e;
    }
  }
}
