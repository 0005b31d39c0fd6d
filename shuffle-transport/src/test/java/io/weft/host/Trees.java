package io.weft.host;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;

/** What lies below a folder. */
final class Trees {
  private Trees() {}

  /** Everything below, without the folder itself; links are not followed. */
  static List<Path> contents(Path folder) {
    try (Stream<Path> all = Files.walk(folder)) {
      return all.filter(path -> !path.equals(folder)).sorted().toList();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
