package io.weft.support;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;

/** A disk that forgets. */
public final class DamagedDisk {
  private DamagedDisk() {}

  /**
   * Changes a byte of the only file in a folder, behind the back of whoever has it mapped.
   *
   * @param offset in the file
   */
  public static void damage(Path folder, long offset) throws IOException {
    try (Stream<Path> files = Files.walk(folder)) {
      Path segment = files.filter(Files::isRegularFile).findFirst().orElseThrow();
      try (RandomAccessFile file = new RandomAccessFile(segment.toFile(), "rw")) {
        file.seek(offset);
        int before = file.read();
        file.seek(offset);
        file.write(~before);
      }
    }
  }
}
