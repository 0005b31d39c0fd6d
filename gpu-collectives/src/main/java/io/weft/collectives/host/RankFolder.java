package io.weft.collectives.host;

import io.weft.collectives.UniqueId;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.file.DirectoryStream;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.SecureRandom;
import java.util.HexFormat;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The folder in which a rank creates what the others of its host map. Segments are deleted once
 * everybody has mapped them, so a killed process leaves no memory behind, only the folder with its
 * lock file and token; that is swept by the next rank that creates one. Thread-safe.
 */
public final class RankFolder implements AutoCloseable {
  static final String LOCK = "alive";
  static final String TOKEN = "token";

  private static final Logger LOG = LoggerFactory.getLogger(RankFolder.class);
  private static final FileAttribute<?> FOLDER_MODE =
      PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------"));
  private static final FileAttribute<?> FILE_MODE =
      PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------"));

  /** Opening and closing a lock file of this process would let go of its lock. */
  private static final Set<Path> OWN = ConcurrentHashMap.newKeySet();

  private final Path path;
  private final String token;
  private final FileChannel lockFile;
  private final FileLock lock;

  private RankFolder(Path path, String token, FileChannel lockFile, FileLock lock) {
    this.path = path;
    this.token = token;
    this.lockFile = lockFile;
    this.lock = lock;
  }

  /** Creates a folder below the parent, which is created too if need be. */
  public static RankFolder create(Path parent, UniqueId id, int rank) throws IOException {
    createParent(parent);
    sweep(parent);
    String random = HexFormat.of().formatHex(random(4));
    Path path = parent.resolve("communicator-" + id + "-" + rank + "-" + random).toAbsolutePath();
    OWN.add(path);
    try {
      Files.createDirectory(path, FOLDER_MODE);
      return fill(path);
    } catch (IOException | RuntimeException e) {
      deleteTree(path);
      OWN.remove(path);
      throw e;
    }
  }

  private static RankFolder fill(Path path) throws IOException {
    String token = HexFormat.of().formatHex(random(16));
    FileChannel lockFile =
        FileChannel.open(
            path.resolve(LOCK),
            Set.of(StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE),
            FILE_MODE);
    try {
      FileLock lock = lockFile.lock();
      Files.createFile(path.resolve(TOKEN), FILE_MODE);
      Files.writeString(path.resolve(TOKEN), token);
      return new RankFolder(path, token, lockFile, lock);
    } catch (IOException | RuntimeException e) {
      lockFile.close();
      throw e;
    }
  }

  private static byte[] random(int length) {
    byte[] bytes = new byte[length];
    new SecureRandom().nextBytes(bytes);
    return bytes;
  }

  private static void createParent(Path parent) throws IOException {
    try {
      Files.createDirectories(parent.toAbsolutePath().getParent());
      Files.createDirectory(parent, FOLDER_MODE);
    } catch (FileAlreadyExistsException e) {
      if (!Files.isDirectory(parent)) {
        throw e;
      }
    }
  }

  /** Deletes what ranks left that died while their communicator was being created. */
  private static void sweep(Path parent) throws IOException {
    try (DirectoryStream<Path> folders = Files.newDirectoryStream(parent, "communicator-*")) {
      for (Path folder : folders) {
        if (!OWN.contains(folder.toAbsolutePath()) && isAbandoned(folder)) {
          LOG.info("deleting {}, which a rank left that has ended", folder);
          deleteTree(folder);
        }
      }
    }
  }

  private static boolean isAbandoned(Path folder) throws IOException {
    try (Life owner = Life.ofOther(folder.resolve(LOCK))) {
      return owner.hasEnded();
    } catch (NoSuchFileException e) {
      // Just being created, or just being deleted.
      return false;
    }
  }

  /** Where the rank puts its segments. */
  public Path path() {
    return path;
  }

  /** Random text in the folder: who reads it sees this very folder. */
  String token() {
    return token;
  }

  /** Deletes a segment; mappings of it stay. */
  void deleteSegment(Path segment) {
    try {
      Files.deleteIfExists(segment);
    } catch (IOException e) {
      LOG.warn("cannot delete {}", segment, e);
    }
  }

  private static void deleteTree(Path folder) throws IOException {
    try (DirectoryStream<Path> files = Files.newDirectoryStream(folder)) {
      for (Path file : files) {
        Files.deleteIfExists(file);
      }
    } catch (NoSuchFileException e) {
      return;
    }
    Files.deleteIfExists(folder);
  }

  /** Deletes the folder and lets go of the lock. */
  @Override
  public void close() {
    try {
      deleteTree(path);
      lock.release();
      lockFile.close();
    } catch (IOException e) {
      throw new UncheckedIOException("cannot let go of " + path, e);
    } finally {
      OWN.remove(path);
    }
  }
}
