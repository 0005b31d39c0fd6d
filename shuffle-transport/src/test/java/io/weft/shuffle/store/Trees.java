package io.weft.shuffle.store;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;

/** Lists the contents of a folder tree. */
final class Trees {
  private Trees() {}

  /** Returns all paths below a folder. Does not follow links. */
  static List<Path> contents(Path folder) {
    try (Stream<Path> all = Files.walk(folder)) {
      return all.filter(path -> !path.equals(folder)).sorted().toList();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
