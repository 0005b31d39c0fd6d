package io.weft.shuffle.store;

import io.weft.shuffle.store.PrivateFolders.FolderNames;
import java.io.IOException;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A lease that lets a reader use a shuffle's memory of another executor on this host. The owner
 * does not reuse that memory until the lease is closed or its reader has died.
 *
 * <p>Take the lease before you open the shuffle's indexes. The owner deletes the indexes before it
 * checks the leases. So either the owner finds the lease, or the reader finds no index.
 *
 * <p>Owned by the reader; thread-safe.
 */
public final class Lease implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(Lease.class);

  /** All leases of this process, to be closed when it ends. */
  private static final Set<Lease> OPEN = ConcurrentHashMap.newKeySet();

  private static final AtomicLong NEXT = new AtomicLong();

  private final Path file;
  private final LockedFile lock;
  private final AtomicBoolean closed = new AtomicBoolean();

  private Lease(Path file, LockedFile lock) {
    this.file = file;
    this.lock = lock;
  }

  /**
   * Takes a lease. A reader may hold several leases of one shuffle.
   *
   * @param ownerFolder folder of the executor whose memory is read
   * @throws java.nio.file.NoSuchFileException if that folder was removed because its owner ended
   */
  public static Lease take(
      Path ownerFolder, int shuffleId, String readerExecutorId, String readerIncarnation)
      throws IOException {
    String name =
        FolderNames.leasePrefix(shuffleId)
            + FolderNames.sanitized(readerExecutorId)
            + "-"
            + FolderNames.sanitized(readerIncarnation)
            + "-"
            + NEXT.getAndIncrement();
    Path folder = ownerFolder.toRealPath();
    Path starting = folder.resolve(FolderNames.STARTING_PREFIX + name);
    Path file = folder.resolve(name);
    LockedFile lock = LockedFile.create(starting, file);
    try {
      Files.move(starting, file, StandardCopyOption.ATOMIC_MOVE);
      Lease lease = new Lease(file, lock);
      OPEN.add(lease);
      return lease;
    } catch (IOException | RuntimeException | Error e) {
      Files.deleteIfExists(starting);
      lock.close();
      throw e;
    }
  }

  /**
   * Closes the leases of this process in the folder of a dead owner. Called when the process ends.
   * A dead owner never reuses its memory.
   */
  static void closeAll(Path ownerFolder) throws IOException {
    Path folder = ownerFolder.toRealPath();
    for (Lease lease : OPEN) {
      if (folder.equals(lease.file.getParent())) {
        try {
          lease.close();
        } catch (IOException e) {
          LOG.warn("The lease {} was not closed: {}", lease.file, e.toString());
        }
      }
    }
  }

  /** Whether the lease is still in the owner's folder. */
  boolean isVisible() {
    return Files.exists(file);
  }

  /** Lets the owner reuse the memory. This process must not read it afterwards. */
  @Override
  public void close() throws IOException {
    if (closed.compareAndSet(false, true)) {
      OPEN.remove(this);
      try {
        Files.deleteIfExists(file);
      } finally {
        lock.close();
      }
    }
  }

  /** The leases of readers in one executor's folder. Thread-safe; has no state. */
  public static final class FolderLeases {
    private static final Logger LOG = LoggerFactory.getLogger(FolderLeases.class);

    private final Path folder;

    public FolderLeases(Path ownerFolder) {
      this.folder = ownerFolder;
    }

    /**
     * Whether a live reader may use a shuffle's memory. The shuffle's indexes must be deleted
     * before. Removes the leases of dead readers. Returns true if the folder cannot be read,
     * because keeping memory is safe.
     */
    public boolean anyLiving(int shuffleId) {
      return anyLivingNamed(FolderNames.leasePrefix(shuffleId));
    }

    /** Whether a live reader holds a lease of any shuffle. */
    boolean anyLiving() {
      return anyLivingNamed(FolderNames.LEASE_PREFIX);
    }

    private boolean anyLivingNamed(String prefix) {
      try (DirectoryStream<Path> leases = Files.newDirectoryStream(folder, isNamed(prefix))) {
        boolean living = false;
        for (Path lease : leases) {
          living |= isLiving(lease);
        }
        return living;
      } catch (NoSuchFileException e) {
        return false;
      } catch (IOException | DirectoryIteratorException e) {
        LOG.warn("The leases in {} cannot be read and count as held", folder, e);
        return true;
      }
    }

    private static DirectoryStream.Filter<Path> isNamed(String prefix) {
      return entry -> entry.getFileName().toString().startsWith(prefix);
    }

    private static boolean isLiving(Path lease) throws IOException {
      try {
        Optional<LockedFile> dead = LockedFile.share(lease);
        if (dead.isEmpty()) {
          return true;
        }
        LockedFile lock = dead.get();
        try (lock) {
          Files.deleteIfExists(lease);
        }
        return false;
      } catch (NoSuchFileException e) {
        return false;
      }
    }
  }
}
