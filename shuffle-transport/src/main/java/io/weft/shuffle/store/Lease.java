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
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A lease that lets a reader use a shuffle's memory of another executor on this host. The owner
 * does not reuse that memory until the lease is closed or its reader has died.
 *
 * <p>Take the lease before you open the shuffle's indexes. The owner deletes the indexes before it
 * checks the leases. So either the owner finds the lease, or the reader finds no index.
 *
 * <p>A lease is an empty file. It names a {@link ReaderLock}, which all leases of a reader in one
 * owner's folder share. So the descriptors of a reader do not grow with the shuffles.
 *
 * <p>Owned by the reader; thread-safe.
 */
public final class Lease implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(Lease.class);

  /** All leases of this process, to be closed when it ends. */
  private static final Set<Lease> OPEN = ConcurrentHashMap.newKeySet();

  private static final AtomicLong NEXT = new AtomicLong();

  private final Path file;
  private final ReaderLock lock;
  private final AtomicBoolean closed = new AtomicBoolean();

  private Lease(Path file, ReaderLock lock) {
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
    Path folder = ownerFolder.toRealPath();
    String reader =
        FolderNames.sanitized(readerExecutorId) + "-" + FolderNames.sanitized(readerIncarnation);
    ReaderLock lock = ReaderLock.retain(folder, reader);
    String name = FolderNames.leasePrefix(shuffleId) + lock.reader() + "." + NEXT.getAndIncrement();
    Path file = folder.resolve(name);
    try {
      Lease lease = new Lease(Files.createFile(file, PrivateFolders.FILE), lock);
      if (!lock.isVisible()) {
        Files.deleteIfExists(file);
        throw new NoSuchFileException(file + ": the folder was deleted and created again");
      }
      OPEN.add(lease);
      return lease;
    } catch (IOException | RuntimeException | Error e) {
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

  /** Whether the lease and the file that it names are still in the owner's folder. */
  boolean isVisible() {
    return Files.exists(file) && lock.isVisible();
  }

  /** Lets the owner reuse the memory. This process must not read it afterwards. */
  @Override
  public void close() throws IOException {
    if (closed.compareAndSet(false, true)) {
      OPEN.remove(this);
      try (lock) {
        Files.deleteIfExists(file);
      }
    }
  }

  /**
   * A locked file in an owner's folder, which shows that a reader is alive. It exists as long as
   * the reader has leases in the folder. Its channel is the only descriptor that they need.
   * Thread-safe.
   */
  static final class ReaderLock implements AutoCloseable {
    private static final ConcurrentHashMap<Path, ReaderLock> HELD = new ConcurrentHashMap<>();

    private final Path key;
    private final String reader;
    private final Path file;
    private final LockedFile lock;

    /** Leases that use it; 0 after the end. */
    private final AtomicInteger leases = new AtomicInteger(1);

    private ReaderLock(Path key, String reader, Path file, LockedFile lock) {
      this.key = key;
      this.reader = reader;
      this.file = file;
      this.lock = lock;
    }

    /** Counts one more lease of a reader in a folder. Closing ends it. */
    static ReaderLock retain(Path folder, String reader) throws IOException {
      Path key = folder.resolve(reader);
      ReaderLock known = HELD.get(key);
      // A folder that was deleted and created again has no such file, and the owner needs one.
      if (known != null && known.isVisible() && known.retain()) {
        return known;
      }
      ReaderLock fresh = create(key, reader + "-" + NEXT.getAndIncrement());
      // If two threads create one at the same time, both work, and later leases use one of them.
      HELD.put(key, fresh);
      return fresh;
    }

    private static ReaderLock create(Path key, String reader) throws IOException {
      String name = FolderNames.READER_PREFIX + reader;
      Path starting = key.resolveSibling(FolderNames.STARTING_PREFIX + name);
      Path file = key.resolveSibling(name);
      LockedFile lock = LockedFile.create(starting, file);
      try {
        Files.move(starting, file, StandardCopyOption.ATOMIC_MOVE);
        return new ReaderLock(key, reader, file, lock);
      } catch (IOException | RuntimeException | Error e) {
        Files.deleteIfExists(starting);
        lock.close();
        throw e;
      }
    }

    private boolean retain() {
      return leases.getAndUpdate(now -> now == 0 ? 0 : now + 1) > 0;
    }

    boolean isVisible() {
      return Files.exists(file);
    }

    /** The name of the reader. Never used again in this folder. */
    String reader() {
      return reader;
    }

    /** Counts one lease less, whose file was deleted before. Unlocks after the last one. */
    @Override
    public void close() throws IOException {
      if (leases.decrementAndGet() == 0) {
        HELD.remove(key, this);
        try {
          Files.deleteIfExists(file);
        } finally {
          lock.close();
        }
      }
    }
  }

  /** The leases of readers in one executor's folder. Thread-safe; has no state. */
  public static final class FolderLeases {
    private static final Logger LOG = LoggerFactory.getLogger(FolderLeases.class);

    private static final Pattern OF_SHUFFLE =
        Pattern.compile(FolderNames.LEASE_PREFIX + "\\d+-(?<reader>.+)\\.\\d+");

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

    /** Deletes the lease of a dead reader, and the file that it would have locked. */
    private static boolean isLiving(Path lease) throws IOException {
      Path locked = lockedFile(lease);
      try {
        // A reader of a leased folder may have a shared lock, beside which another one is possible.
        Optional<LockedFile> dead =
            locked.equals(lease) ? LockedFile.seize(locked) : LockedFile.share(locked);
        if (dead.isEmpty()) {
          return true;
        }
        LockedFile lock = dead.get();
        try (lock) {
          Files.deleteIfExists(lease);
          Files.deleteIfExists(locked);
        }
      } catch (NoSuchFileException e) {
        // The reader has closed its leases, or a check has found it dead.
        Files.deleteIfExists(lease);
      }
      return false;
    }

    /** A reader of a shuffle locks its own file, a process that reads a leased folder the lease. */
    private static Path lockedFile(Path lease) {
      Matcher shuffle = OF_SHUFFLE.matcher(lease.getFileName().toString());
      return shuffle.matches()
          ? lease.resolveSibling(FolderNames.READER_PREFIX + shuffle.group("reader"))
          : lease;
    }
  }
}
