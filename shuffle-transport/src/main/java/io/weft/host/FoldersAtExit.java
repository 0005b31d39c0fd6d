package io.weft.host;

import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Folders of executors on this host that are swept when this process ends: for a driver, which may
 * be the last process of its application on a host whose last executor was killed. A folder whose
 * executor lives, or is read by a living one, stays; that one sweeps when it ends.
 *
 * <p>Thread-safe. The thread "weft-folders-at-exit" runs when the virtual machine ends.
 */
public final class FoldersAtExit {
  private static final Logger LOG = LoggerFactory.getLogger(FoldersAtExit.class);
  private static final Set<Announced> ANNOUNCED = ConcurrentHashMap.newKeySet();
  private static final AtomicBoolean HOOKED = new AtomicBoolean();

  private record Announced(Path folder, String token) {}

  private FoldersAtExit() {}

  /**
   * Remembers a folder if it is of this host. At the end it is left alone unless the token is in
   * it.
   *
   * @param bootId that its executor announced
   * @param folder the executor's
   * @param token that its executor announced
   */
  public static void sweep(String bootId, Path folder, String token) {
    if (!ExecutorFolder.currentBootId().equals(bootId)) {
      return;
    }
    ANNOUNCED.add(new Announced(folder, token));
    if (HOOKED.compareAndSet(false, true)) {
      try {
        Runtime.getRuntime()
            .addShutdownHook(new Thread(FoldersAtExit::sweepAll, "weft-folders-at-exit"));
      } catch (IllegalStateException e) {
        LOG.debug("The virtual machine is ending; {} is swept by others", folder);
      }
    }
  }

  private static void sweepAll() {
    String bootId = ExecutorFolder.currentBootId();
    List<Path> left =
        ANNOUNCED.stream()
            .filter(known -> ExecutorFolder.isReachable(bootId, known.folder(), known.token()))
            .map(Announced::folder)
            .toList();
    FolderSweep.atExit(left);
    left.forEach(ExecutorFolder::removeParents);
  }
}
