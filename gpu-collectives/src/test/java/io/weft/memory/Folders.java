package io.weft.memory;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Stream;

/**
 * Temporary folders of a test: one for the arena, in memory if possible, and one for its disk tier.
 */
final class Folders implements AutoCloseable {
  private static final Path MEMORY = Path.of("/dev/shm");

  final Path arena;
  final Path disk;

  Folders() {
    try {
      arena =
          Files.isWritable(MEMORY)
              ? Files.createTempDirectory(MEMORY, "weft-test-")
              : Files.createTempDirectory("weft-test-");
      disk = Files.createTempDirectory("weft-test-");
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** All files and folders below a folder. */
  static List<Path> contents(Path folder) {
    try (Stream<Path> all = Files.walk(folder)) {
      return all.filter(path -> !path.equals(folder)).toList();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** The number of mappings of this process from files below a folder. */
  static long mappings(Path folder) {
    try (Stream<String> maps = Files.lines(Path.of("/proc/self/maps"))) {
      return maps.filter(line -> line.contains(folder + "/")).count();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** Deletes the arena's folder, as another program may. */
  void deleteArena() {
    delete(arena);
  }

  /** Creates the arena's folder again. */
  void restore() {
    try {
      Files.createDirectories(arena);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  @Override
  public void close() {
    delete(arena);
    delete(disk);
  }

  private static void delete(Path folder) {
    if (!Files.exists(folder, LinkOption.NOFOLLOW_LINKS)) {
      return;
    }
    try (Stream<Path> all = Files.walk(folder)) {
      for (Path path : all.sorted(Comparator.reverseOrder()).toList()) {
        Files.delete(path);
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
