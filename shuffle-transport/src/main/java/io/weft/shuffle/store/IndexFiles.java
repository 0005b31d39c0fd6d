package io.weft.shuffle.store;

import io.weft.memory.SettingNames;
import io.weft.shuffle.store.MapOutputFormat.CorruptIndexException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.FileStore;
import java.nio.file.Files;
import java.nio.file.LinkOption;
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
 * Writes, reads and deletes index files in an executor's folder. If the folder is full, writes them
 * to a folder on a local disk. The link {@code overflow} in the executor's folder points there. The
 * link is created first, because a full file system may not have space for it. If another program
 * deleted the link with the executor's folder, it is created again when it is needed. Thread-safe.
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

  /** The folder on a local disk; empty if there is none. */
  private final Optional<Path> overflow;

  private final AtomicBoolean warned = new AtomicBoolean();

  /**
   * Creates the overflow link of an executor.
   *
   * @param folder of the executor. Its owner removes it with its contents and the targets of its
   *     links
   * @param localDirs the first one on another file system takes the indexes that do not fit
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
          link(folder, target);
          return Optional.of(target);
        }
      }
    } catch (IOException e) {
      LOG.warn("Indexes have no overflow folder for {}: {}", folder, e.toString());
    }
    return Optional.empty();
  }

  /** Creates the overflow folder and the link to it, unless they exist. */
  private static void link(Path folder, Path target) throws IOException {
    Path link = folder.resolve(OVERFLOW);
    try {
      if (!Files.exists(target)) {
        Files.createDirectory(target, FOLDER_OF_OWNER);
      }
      if (!Files.exists(link, LinkOption.NOFOLLOW_LINKS)) {
        Files.createSymbolicLink(link, target);
      }
    } catch (FileAlreadyExistsException e) {
      LOG.debug("Another task has just created {}", e.getFile());
    }
  }

  /**
   * Makes an index visible atomically.
   *
   * @throws IOException if there is no space for it; the message names the places and the remedy
   */
  void write(MapOutput output) throws IOException {
    try {
      write(folder, output);
    } catch (IOException e) {
      if (overflow.isEmpty()) {
        throw noRoom(output, e);
      }
      if (!warned.getAndSet(true)) {
        LOG.warn("{} is full; indexes now go to the local folders: {}", folder, e.toString());
      }
      writeOverflow(output, e);
    }
  }

  private void writeOverflow(MapOutput output, IOException before) throws IOException {
    try {
      Path target = overflow.orElseThrow();
      link(folder, target);
      write(target, output);
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
            + overflow.map(target -> " nor to " + target).orElse("")
            + ": "
            + cause
            + ". Make room there, raise "
            + names.of("marginBytes")
            + ", or set "
            + names.of("diskFolders")
            + " to a disk with room",
        cause);
  }

  /** Writes an index under a hidden name and then renames it, so that it appears atomically. */
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

  /** Deletes an index in both places. */
  void delete(BlockKey key) throws IOException {
    String name = MapOutputFormat.fileName(key);
    Files.deleteIfExists(folder.resolve(name));
    if (overflow.isPresent()) {
      Files.deleteIfExists(overflow.get().resolve(name));
    }
  }

  /** The folders that may have indexes of an executor. */
  static List<Path> places(Path folder) {
    return List.of(folder, folder.resolve(OVERFLOW));
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
   * @throws NoSuchFileException if it does not exist
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
    if (size > MapOutputFormat.MAX_BYTES) {
      throw new CorruptIndexException("index of " + key + ": too long: " + size);
    }
    return MapOutputFormat.decode(ByteBuffer.wrap(Files.readAllBytes(file)), key);
  }
}
