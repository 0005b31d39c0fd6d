package io.weft.host;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A reader's word that it may be looking at a shuffle's memory of another executor on this host:
 * the owner does not use that memory anew before the lease is closed or its reader has died.
 *
 * <p>Take the lease first and open the shuffle's indexes after: the owner deletes the indexes first
 * and looks for leases after, so either it sees the lease or the reader sees the index gone.
 *
 * <p>Owned by the reader; thread-safe.
 */
public final class Lease implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(Lease.class);

  /** All of this process, for its end. */
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
   * Takes a lease. A reader may hold several of one shuffle.
   *
   * @param ownerFolder folder of the executor whose memory is to be read
   * @throws java.nio.file.NoSuchFileException when that folder is gone: its owner ended
   */
  public static Lease take(
      Path ownerFolder, int shuffleId, String readerExecutorId, String readerIncarnation)
      throws IOException {
    String name =
        Names.leasePrefix(shuffleId)
            + Names.sanitized(readerExecutorId)
            + "-"
            + Names.sanitized(readerIncarnation)
            + "-"
            + NEXT.getAndIncrement();
    Path folder = ownerFolder.toRealPath();
    Path starting = folder.resolve(Names.STARTING_PREFIX + name);
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
   * Closes what this process holds in a folder whose owner is dead, so that the memory is never
   * used for anything else: a process that ends lets go of it.
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

  /** Lets the owner use the memory again; nothing of it may be read any more. */
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
}
