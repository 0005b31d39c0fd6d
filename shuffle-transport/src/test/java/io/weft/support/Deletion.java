package io.weft.support;

import static org.awaitility.Awaitility.await;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Comparator;
import java.util.stream.Stream;

/** Deletes folders as another program may, while their owner uses them. */
public final class Deletion {
  private Deletion() {}

  /** Deletes a folder with its contents once. Its owner may create it again at any time. */
  public static void delete(Path folder) {
    await("deletion of " + folder).atMost(Duration.ofSeconds(20)).until(() -> deleteOnce(folder));
  }

  /** Returns whether all of it was deleted. */
  private static boolean deleteOnce(Path folder) {
    try (Stream<Path> all = Files.walk(folder)) {
      for (Path path : all.sorted(Comparator.reverseOrder()).toList()) {
        Files.deleteIfExists(path);
      }
      return true;
    } catch (IOException | UncheckedIOException e) {
      // The owner has created a file meanwhile.
      return !Files.exists(folder);
    }
  }
}
