package io.weft.device.cuda;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;

/** The open descriptors of this process. */
public final class OpenDescriptors {
  private static final Path ALL = Path.of("/proc/self/fd");

  private OpenDescriptors() {}

  /**
   * The number of descriptors whose target contains a text, such as "socket:" or the name of a
   * file.
   *
   * @param text a part of the system's description of the descriptor
   */
  public static long count(String text) {
    try (Stream<Path> all = Files.list(ALL)) {
      return all.filter(each -> whatIs(each).contains(text)).count();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** Returns nothing if it was closed meanwhile. */
  private static String whatIs(Path descriptor) {
    try {
      return Files.readSymbolicLink(descriptor).toString();
    } catch (IOException e) {
      return "";
    }
  }
}
