package io.weft.catalog;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Set;

/** Index files on their way into and out of an executor's folder. Stateless. */
final class IndexFiles {
  private static final Set<StandardOpenOption> CREATE =
      Set.of(
          StandardOpenOption.CREATE,
          StandardOpenOption.TRUNCATE_EXISTING,
          StandardOpenOption.WRITE);
  private static final FileAttribute<?> OWNER_ONLY =
      PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------"));

  private IndexFiles() {}

  /** Writes an index under another name first: it appears as a whole or not at all. */
  static void write(Path folder, MapOutput output) throws IOException {
    ByteBuffer bytes = MapOutputFormat.encode(output);
    String name = MapOutputFormat.fileName(output.key());
    Path hidden = folder.resolve("unpublished-" + name);
    try {
      try (FileChannel channel = FileChannel.open(hidden, CREATE, OWNER_ONLY)) {
        while (bytes.hasRemaining()) {
          channel.write(bytes);
        }
      }
      Files.move(hidden, folder.resolve(name), StandardCopyOption.ATOMIC_MOVE);
    } catch (IOException | RuntimeException e) {
      Files.deleteIfExists(hidden);
      throw e;
    }
  }

  /**
   * Reads a peer's index.
   *
   * @throws java.nio.file.NoSuchFileException if it is gone or never was
   * @throws CorruptIndexException if it is not an intact index of this output
   */
  static MapOutput read(Path folder, BlockKey key) throws IOException {
    Path file = folder.resolve(MapOutputFormat.fileName(key));
    long size = Files.size(file);
    if (size > MapOutputFormat.MOST_BYTES) {
      throw new CorruptIndexException("index of " + key + ": too long: " + size);
    }
    return MapOutputFormat.decode(ByteBuffer.wrap(Files.readAllBytes(file)), key);
  }
}
