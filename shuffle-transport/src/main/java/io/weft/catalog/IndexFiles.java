package io.weft.catalog;

import io.weft.memory.SettingNames;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.FileStore;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicBoolean;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Index files on their way into and out of an executor's folder. Where that is full they go to a
 * folder on a local disk, to which {@code overflow} in the executor's folder is a link. The link is
 * made at once, because a full file system may have no room for it. Thread-safe.
 */
final class IndexFiles {
  private static final Logger LOG = LoggerFactory.getLogger(IndexFiles.class);
  private static final String OVERFLOW = "overflow";
  private static final Set<StandardOpenOption> CREATE =
      Set.of(
          StandardOpenOption.CREATE,
          StandardOpenOption.TRUNCATE_EXISTING,
          StandardOpenOption.WRITE);
  private static final FileAttribute<?> OWNER_ONLY =
      PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------"));
  private static final FileAttribute<?> FOLDER_OF_OWNER =
      PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------"));

  private final Path folder;
  private final SettingNames names;
  private final Optional<Path> overflow;
  private final AtomicBoolean said = new AtomicBoolean();

  /**
   * The indexes of an executor.
   *
   * @param folder the executor's; with all in it, and what links in it lead to, it is removed by
   *     its owner
   * @param localDirs the first that is not on the folder's file system takes what does not fit
   */
  IndexFiles(Path folder, List<Path> localDirs, SettingNames names) {
    this.folder = folder;
    this.names = names;
    this.overflow = openOverflow(folder, localDirs);
  }

  private static Optional<Path> openOverflow(Path folder, List<Path> localDirs) {
    try {
      FileStore ours = Files.getFileStore(folder);
      for (Path localDir : localDirs) {
        if (Files.isDirectory(localDir) && !Files.getFileStore(localDir).equals(ours)) {
          String name =
              String.format(
                  "weft-index-%s-%08x",
                  folder.getFileName(), ThreadLocalRandom.current().nextInt());
          Path target = localDir.toAbsolutePath().resolve(name);
          Path link = Files.createSymbolicLink(folder.resolve(OVERFLOW), target);
          Files.createDirectory(target, FOLDER_OF_OWNER);
          return Optional.of(link);
        }
      }
    } catch (IOException e) {
      LOG.warn("Indexes have no other place than {}: {}", folder, e.toString());
    }
    return Optional.empty();
  }

  /**
   * Makes an index visible, as a whole or not at all.
   *
   * @throws IOException when there is no room for it anywhere; says where and what to do
   */
  void write(MapOutput output) throws IOException {
    try {
      write(folder, output);
    } catch (IOException e) {
      if (overflow.isEmpty()) {
        throw noRoom(output, e);
      }
      if (!said.getAndSet(true)) {
        LOG.warn(
            "{} takes no index any more, they go to the local folders: {}", folder, e.toString());
      }
      writeOverflow(output, e);
    }
  }

  private void writeOverflow(MapOutput output, IOException before) throws IOException {
    try {
      write(overflow.orElseThrow(), output);
    } catch (IOException e) {
      e.addSuppressed(before);
      throw noRoom(output, e);
    }
  }

  private IOException noRoom(MapOutput output, IOException cause) {
    return new IOException(
        "the index of "
            + output.key()
            + " cannot be written to "
            + folder
            + overflow.map(link -> " nor through " + link).orElse("")
            + ": "
            + cause
            + ". Make room there, raise "
            + names.of("marginBytes")
            + ", or set "
            + names.of("diskFolders")
            + " to a disk with room",
        cause);
  }

  /** Writes an index under another name first: it appears as a whole or not at all. */
  private static void write(Path place, MapOutput output) throws IOException {
    ByteBuffer bytes = MapOutputFormat.encode(output);
    String name = MapOutputFormat.fileName(output.key());
    Path hidden = place.resolve("unpublished-" + name);
    try {
      try (FileChannel channel = FileChannel.open(hidden, CREATE, OWNER_ONLY)) {
        while (bytes.hasRemaining()) {
          channel.write(bytes);
        }
      }
      Files.move(hidden, place.resolve(name), StandardCopyOption.ATOMIC_MOVE);
    } catch (IOException | RuntimeException e) {
      Files.deleteIfExists(hidden);
      throw e;
    }
  }

  /** Takes an index back, wherever it is. */
  void delete(BlockKey key) throws IOException {
    String name = MapOutputFormat.fileName(key);
    Files.deleteIfExists(folder.resolve(name));
    if (overflow.isPresent()) {
      Files.deleteIfExists(overflow.get().resolve(name));
    }
  }

  /** Whether an executor's folder has the index of an output. */
  static boolean exists(Path folder, BlockKey key) {
    String name = MapOutputFormat.fileName(key);
    return Files.exists(folder.resolve(name))
        || Files.exists(folder.resolve(OVERFLOW).resolve(name));
  }

  /**
   * Reads a peer's index.
   *
   * @throws NoSuchFileException if it is gone or never was
   * @throws CorruptIndexException if it is not an intact index of this output
   */
  static MapOutput read(Path folder, BlockKey key) throws IOException {
    String name = MapOutputFormat.fileName(key);
    try {
      return read(key, folder.resolve(name));
    } catch (NoSuchFileException e) {
      return read(key, folder.resolve(OVERFLOW).resolve(name));
    }
  }

  private static MapOutput read(BlockKey key, Path file) throws IOException {
    long size = Files.size(file);
    if (size > MapOutputFormat.MOST_BYTES) {
      throw new CorruptIndexException("index of " + key + ": too long: " + size);
    }
    return MapOutputFormat.decode(ByteBuffer.wrap(Files.readAllBytes(file)), key);
  }
}
