package io.weft.support;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.stream.Stream;

/** Damages files on disk. */
public final class DamagedDisk {
  private static final byte[] MAGIC = "WFTE".getBytes(StandardCharsets.US_ASCII);
  private static final int ALIGNMENT = 64;

  private DamagedDisk() {}

  /**
   * Swaps the first two encrypted chunks of the only file in a folder.
   *
   * @param bytes of each encrypted chunk
   */
  public static void swap(Path folder, int bytes) throws IOException {
    Path segment = onlyFile(folder);
    byte[] before = Files.readAllBytes(segment);
    int first = encryptedFrom(before, 0);
    int second = encryptedFrom(before, first + bytes);
    try (RandomAccessFile file = new RandomAccessFile(segment.toFile(), "rw")) {
      file.seek(first);
      file.write(before, second, bytes);
      file.seek(second);
      file.write(before, first, bytes);
    }
  }

  private static int encryptedFrom(byte[] segment, int from) {
    int at = (from + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    while (!Arrays.equals(segment, at, at + MAGIC.length, MAGIC, 0, MAGIC.length)) {
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
   * Changes a byte of the only file in a folder while processes may have it mapped.
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
