package io.weft.shuffle.store;

import io.weft.shuffle.store.PrivateFolders.FolderNames;
import java.io.IOException;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.Collection;
import java.util.LinkedHashSet;
import java.util.Optional;

/**
 * The folder of an executor that has died, while this process may adopt what is in it. It holds the
 * lock of the dead executor. The kernel gives that lock only after the process has ended, and to
 * one process at a time. So the dead executor writes nothing more, no other executor adopts the
 * folder, and no sweep removes it. For one thread.
 */
public final class DeadFolder implements AutoCloseable {
  private final Path path;
  private final LockedFile lock;

  private DeadFolder(Path path, LockedFile lock) {
    this.path = path;
    this.lock = lock;
  }

  /**
   * Takes the lock of a dead executor whose folder is not settled.
   *
   * @return empty if the executor lives, another process has the lock, or the folder is settled
   * @throws NoSuchFileException if the folder was removed
   */
  public static Optional<DeadFolder> seize(Path folder) throws IOException {
    if (isSettled(folder)) {
      return Optional.empty();
    }
    Optional<LockedFile> seized = LockedFile.seize(folder.resolve(FolderNames.ALIVE));
    if (seized.isEmpty()) {
      return Optional.empty();
    }
    DeadFolder dead = new DeadFolder(folder, seized.get());
    if (!isSettled(folder)) {
      return Optional.of(dead);
    }
    dead.close();
    return Optional.empty();
  }

  /**
   * Whether the folder has its token. Without it, another program has deleted files. A living
   * executor then creates its folder again, and has no lock meanwhile.
   */
  public boolean isIntact() {
    return Files.exists(path.resolve(FolderNames.TOKEN));
  }

  /** Whether an executor, which may be alive, has published any map output. */
  public static boolean hasOutputs(Path folder) {
    return IndexFiles.places(folder).stream().anyMatch(DeadFolder::hasIndex);
  }

  private static boolean hasIndex(Path place) {
    try (DirectoryStream<Path> indexes = Files.newDirectoryStream(place, "output-*")) {
      return indexes.iterator().hasNext();
    } catch (IOException | DirectoryIteratorException e) {
      return false; // It was removed meanwhile, or is not there.
    }
  }

  /** Whether no executor adopts the folder any more. Its application's executors then remove it. */
  public static boolean isSettled(Path folder) {
    return !Files.exists(folder.resolve(FolderNames.ADOPTABLE));
  }

  /** The folder. */
  public Path path() {
    return path;
  }

  /** Spark's id of the dead executor, with characters that are not safe in names replaced. */
  public String executorId() {
    String name = path.getFileName().toString();
    return name.substring(0, name.lastIndexOf('-'));
  }

  /** The dead executor's incarnation. */
  public String incarnation() {
    String name = path.getFileName().toString();
    return name.substring(name.lastIndexOf('-') + 1);
  }

  /** The keys of the published outputs. An output that was being written has no index. */
  public Collection<BlockKey> outputs() {
    LinkedHashSet<BlockKey> keys = new LinkedHashSet<>();
    for (Path place : IndexFiles.places(path)) {
      for (Path file : FolderSweep.entries(place)) {
        MapOutputFormat.key(file.getFileName().toString()).ifPresent(keys::add);
      }
    }
    return keys;
  }

  /** Ends the adoption: the folder can be removed when no reader has a lease in it. */
  public void settle() throws IOException {
    Files.deleteIfExists(path.resolve(FolderNames.ADOPTABLE));
  }

  /** Removes the folder, unless it is not settled or a living reader has a lease in it. */
  public static void remove(Path folder) {
    FolderSweep.executor(folder);
  }

  /** Gives up the lock. */
  @Override
  public void close() throws IOException {
    lock.close();
  }
}
