package io.weft.host;

import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Folders of executors on this host, for a driver: it may be the last process of its application on
 * a host whose last executor was killed. They are swept when it asks for that, and when the process
 * ends. A folder whose executor lives, or that a living one reads, stays; that one sweeps at its
 * end.
 *
 * <p>Thread-safe. The thread "weft-announced-folders" runs when the virtual machine ends.
 */
public final class AnnouncedFolders {
  private static final Logger LOG = LoggerFactory.getLogger(AnnouncedFolders.class);
  private static final Set<Announced> ANNOUNCED = ConcurrentHashMap.newKeySet();
  private static final AtomicBoolean HOOKED = new AtomicBoolean();

  private record Announced(Path folder, String token) {}

  private AnnouncedFolders() {}

  /**
   * Remembers a folder if it is of this host. It is never swept unless the token is in it.
   *
   * @param bootId that its executor announced
   * @param folder the executor's
   * @param token that its executor announced
   */
  public static void add(String bootId, Path folder, String token) {
    if (!ExecutorFolder.currentBootId().equals(bootId)) {
      return;
    }
    ANNOUNCED.add(new Announced(folder, token));
    if (HOOKED.compareAndSet(false, true)) {
      try {
        Runtime.getRuntime()
            .addShutdownHook(new Thread(AnnouncedFolders::sweepAtExit, "weft-announced-folders"));
      } catch (IllegalStateException e) {
        LOG.debug("The virtual machine is ending; {} is swept by others", folder);
      }
    }
  }

  /** Removes what dead executors left, and forgets folders that are gone. */
  public static void sweep() {
    List<Path> left = left();
    left.forEach(FolderSweep::executor);
    left.forEach(ExecutorFolder::removeParents);
  }

  private static void sweepAtExit() {
    List<Path> left = left();
    FolderSweep.atExit(left);
    left.forEach(ExecutorFolder::removeParents);
  }

  private static List<Path> left() {
    String bootId = ExecutorFolder.currentBootId();
    ANNOUNCED.removeIf(known -> !ExecutorFolder.isReachable(bootId, known.folder(), known.token()));
    return ANNOUNCED.stream().map(Announced::folder).toList();
  }
}
