package io.weft.host;

import java.io.IOException;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.Optional;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The leases of readers in one executor's folder. Thread-safe; has no state. */
public final class LeaseBoard {
  private static final Logger LOG = LoggerFactory.getLogger(LeaseBoard.class);

  private final Path folder;

  public LeaseBoard(Path ownerFolder) {
    this.folder = ownerFolder;
  }

  /**
   * Whether a live reader may use a shuffle's memory. The shuffle's indexes must be deleted before.
   * Removes the leases of dead readers. Returns true if the folder cannot be read, because keeping
   * memory is safe.
   */
  public boolean anyLiving(int shuffleId) {
    return anyLivingNamed(Names.leasePrefix(shuffleId));
  }

  /** Whether a live reader holds a lease of any shuffle. */
  boolean anyLiving() {
    return anyLivingNamed(Names.LEASE_PREFIX);
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
