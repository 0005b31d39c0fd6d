package io.weft.collectives.bootstrap;

import io.weft.collectives.UniqueId;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.channels.OverlappingFileLockException;
import java.nio.file.DirectoryStream;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.SecureRandom;
import java.time.Duration;
import java.time.Instant;
import java.util.HexFormat;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The folder of the files that a rank creates for the other ranks of its host to map. Segments are
 * deleted once every rank has mapped them. So a killed process leaves no memory behind, only the
 * folder with its lock file and token; the next rank that creates a folder deletes it. Thread-safe.
 */
public final class RankFolder implements AutoCloseable {
  public static final String LOCK = "alive";
  public static final String TOKEN = "token";

  private static final String FINISHED = "communicator-";
  private static final String DRAFT = "draft-";
  private static final String SWEPT = "{" + FINISHED + "," + DRAFT + "}*";

  /** The limit of the time from creating a folder to locking it. */
  private static final Duration DRAFT_LIFE = Duration.ofMinutes(10);

  private static final Logger LOG = LoggerFactory.getLogger(RankFolder.class);
  private static final FileAttribute<?> FOLDER_MODE =
      PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------"));
  private static final FileAttribute<?> FILE_MODE =
      PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------"));

  /**
   * The folders of this process. Opening and closing a lock file of this process would release its
   * lock.
   */
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

  /** Creates a folder below the parent, which is created too if it does not exist. */
  public static RankFolder create(Path parent, UniqueId id, int rank) throws IOException {
    createParent(parent);
    sweep(parent);
    String name = id + "-" + rank + "-" + HexFormat.of().formatHex(random(4));
    Path path = parent.resolve(FINISHED + name).toAbsolutePath();
    Path draft = parent.resolve(DRAFT + name).toAbsolutePath();
    OWN.add(path);
    try {
      Files.createDirectory(draft, FOLDER_MODE);
      return fill(draft, path);
    } catch (IOException | RuntimeException e) {
      deleteTree(draft);
      OWN.remove(path);
      throw e;
    }
  }

  /**
   * The folder has another name until it is locked, because an unlocked folder counts as abandoned.
   */
  private static RankFolder fill(Path draft, Path path) throws IOException {
    String token = HexFormat.of().formatHex(random(16));
    FileChannel lockFile =
        FileChannel.open(
            draft.resolve(LOCK),
            Set.of(StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE),
            FILE_MODE);
    try {
      FileLock lock = lockFile.lock();
      Files.createFile(draft.resolve(TOKEN), FILE_MODE);
      Files.writeString(draft.resolve(TOKEN), token);
      Files.move(draft, path, StandardCopyOption.ATOMIC_MOVE);
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

  /** Deletes the folders of ranks that died. */
  private static void sweep(Path parent) throws IOException {
    try (DirectoryStream<Path> folders = Files.newDirectoryStream(parent, SWEPT)) {
      for (Path folder : folders) {
        boolean own = OWN.contains(folder.toAbsolutePath());
        if (!own && !isFreshDraft(folder) && isAbandoned(folder)) {
          LOG.info("deleting {}, left behind by a rank that has ended", folder);
          deleteTree(folder);
        }
      }
    }
  }

  private static boolean isFreshDraft(Path folder) throws IOException {
    try {
      Instant changed = Files.getLastModifiedTime(folder).toInstant();
      return folder.getFileName().toString().startsWith(DRAFT)
          && changed.plus(DRAFT_LIFE).isAfter(Instant.now());
    } catch (NoSuchFileException e) {
      return true;
    }
  }

  private static boolean isAbandoned(Path folder) throws IOException {
    try (Liveness owner = Liveness.ofOther(folder.resolve(LOCK))) {
      return owner.hasEnded();
    } catch (NoSuchFileException e) {
      // The folder is being created or deleted by another rank.
      return false;
    }
  }

  /** The folder for the rank's segments. */
  public Path path() {
    return path;
  }

  /** Random text in the folder; a rank that reads it sees this same folder. */
  public String token() {
    return token;
  }

  /** Deletes a segment; mappings of it stay. */
  public void deleteSegment(Path segment) {
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

  /** Deletes the folder and releases the lock. */
  @Override
  public void close() {
    try {
      deleteTree(path);
      lock.release();
      lockFile.close();
    } catch (IOException e) {
      throw new UncheckedIOException("cannot delete and unlock " + path, e);
    } finally {
      OWN.remove(path);
    }
  }

  /**
   * Tells whether the process of a rank is alive. The process holds a lock on a file, and the
   * kernel releases it however the process ends. The file may be deleted meanwhile. Thread-safe.
   */
  public interface Liveness extends AutoCloseable {
    /** For ranks in this process, which is always alive. */
    Liveness OWN =
        new Liveness() {
          @Override
          public boolean hasEnded() {
            return false;
          }

          @Override
          public void close() {
            // No resources to release.
          }
        };

    boolean hasEnded();

    @Override
    void close();

    /**
     * Opens the lock file of another process. It must not be one of this process: closing the file
     * would release this process's lock.
     *
     * @param lockFile still exists now
     */
    static Liveness ofOther(Path lockFile) throws IOException {
      FileChannel channel = FileChannel.open(lockFile, StandardOpenOption.READ);
      return new Liveness() {
        @Override
        public synchronized boolean hasEnded() {
          try (FileLock lock = channel.tryLock(0, Long.MAX_VALUE, true)) {
            return lock != null;
          } catch (OverlappingFileLockException e) {
            // Another rank of this process is checking right now; the next poll checks again.
            return false;
          } catch (IOException e) {
            throw new UncheckedIOException("cannot test the lock on " + lockFile, e);
          }
        }

        @Override
        public void close() {
          try {
            channel.close();
          } catch (IOException e) {
            throw new UncheckedIOException("cannot close " + lockFile, e);
          }
        }
      };
    }
  }
}
