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

/** The leases that readers hold in one executor's folder. Thread-safe: it keeps no state. */
public final class LeaseBoard {
  private static final Logger LOG = LoggerFactory.getLogger(LeaseBoard.class);

  private final Path folder;

  public LeaseBoard(Path ownerFolder) {
    this.folder = ownerFolder;
  }

  /**
   * Whether a living reader may be looking at a shuffle's memory. The shuffle's indexes must be
   * deleted before. Leases of dead readers are removed on the way. When the folder cannot be looked
   * at the answer is true: keeping memory is the safe side.
   */
  public boolean anyLiving(int shuffleId) {
    return anyLivingNamed(Names.leasePrefix(shuffleId));
  }

  /** Whether a living reader holds a lease of any shuffle. */
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
      LOG.warn("The leases in {} cannot be read, so they are taken to be held", folder, e);
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
