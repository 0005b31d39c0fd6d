package io.weft.device.descriptor;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;

/** The descriptors that this process has open. */
public final class OpenDescriptors {
  private static final Path ALL = Path.of("/proc/self/fd");

  private OpenDescriptors() {}

  /**
   * How many there are whose text contains this, such as "socket:" or the name of a file.
   *
   * @param text in what the system says of the descriptor
   */
  public static long count(String text) {
    try (Stream<Path> all = Files.list(ALL)) {
      return all.filter(each -> whatIs(each).contains(text)).count();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** Nothing where it has been closed meanwhile. */
  private static String whatIs(Path descriptor) {
    try {
      return Files.readSymbolicLink(descriptor).toString();
    } catch (IOException e) {
      return "";
    }
  }
}
