package io.weft.support;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.stream.Stream;

/** A disk that forgets. */
public final class DamagedDisk {
  private static final byte[] SEALED = "WFTE".getBytes(StandardCharsets.US_ASCII);
  private static final int ALIGNMENT = 64;

  private DamagedDisk() {}

  /**
   * Puts the first two sealed chunks of the only file in a folder in each other's place.
   *
   * @param bytes of each, sealed
   */
  public static void swap(Path folder, int bytes) throws IOException {
    Path segment = onlyFile(folder);
    byte[] before = Files.readAllBytes(segment);
    int first = sealedFrom(before, 0);
    int second = sealedFrom(before, first + bytes);
    try (RandomAccessFile file = new RandomAccessFile(segment.toFile(), "rw")) {
      file.seek(first);
      file.write(before, second, bytes);
      file.seek(second);
      file.write(before, first, bytes);
    }
  }

  private static int sealedFrom(byte[] segment, int from) {
    int at = (from + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    while (!Arrays.equals(segment, at, at + SEALED.length, SEALED, 0, SEALED.length)) {
      at += ALIGNMENT;
    }
    return at;
  }

  private static Path onlyFile(Path folder) throws IOException {
    try (Stream<Path> files = Files.walk(folder)) {
      return files.filter(Files::isRegularFile).findFirst().orElseThrow();
    }
  }

  /**
   * Changes a byte of the only file in a folder, behind the back of whoever has it mapped.
   *
   * @param offset in the file
   */
  public static void damage(Path folder, long offset) throws IOException {
    try (RandomAccessFile file = new RandomAccessFile(onlyFile(folder).toFile(), "rw")) {
      file.seek(offset);
      int before = file.read();
      file.seek(offset);
      file.write(~before);
    }
  }
}
