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
   * @throws java.nio.file.NoSuchFileException if that folder is gone because its owner ended
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
}
