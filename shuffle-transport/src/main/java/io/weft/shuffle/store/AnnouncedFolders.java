package io.weft.shuffle.store;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Sweeps the folders of executors on the driver's host. If the last executor on a host is killed,
 * the driver may be the last process of the application there. Folders are swept on request and
 * when the process ends. A folder stays if its executor is alive or a live executor reads it; that
 * executor sweeps it later. Unfinished folders of these applications, whose executors were killed
 * at their start, go too: an executor that still starts makes its folder anew.
 *
 * <p>Thread-safe. The shutdown hook is the thread "weft-announced-folders".
 */
public final class AnnouncedFolders {
  private static final Logger LOG = LoggerFactory.getLogger(AnnouncedFolders.class);
  private static final Set<Announced> ANNOUNCED = ConcurrentHashMap.newKeySet();

  /** By application's folder, a folder of one of its executors that was there. */
  private static final Map<Path, Path> APPLICATIONS = new ConcurrentHashMap<>();

  private static final AtomicBoolean HOOKED = new AtomicBoolean();

  private record Announced(Path folder, String token) {}

  private AnnouncedFolders() {}

  /**
   * Registers a folder if it is on this host. It is swept only if it contains the token.
   *
   * @param bootId that its executor announced
   * @param folder of the executor
   * @param token that its executor announced
   */
  public static void add(String bootId, Path folder, String token) {
    if (!ExecutorFolder.currentBootId().equals(bootId)) {
      return;
    }
    ANNOUNCED.add(new Announced(folder, token));
    if (ExecutorFolder.isReachable(bootId, folder, token)) {
      APPLICATIONS.putIfAbsent(folder.getParent(), folder);
    }
    if (HOOKED.compareAndSet(false, true)) {
      try {
        Runtime.getRuntime()
            .addShutdownHook(new Thread(AnnouncedFolders::sweepAtExit, "weft-announced-folders"));
      } catch (IllegalStateException e) {
        LOG.debug("The JVM is shutting down; another process sweeps {}", folder);
      }
    }
  }

  /** Removes the folders of dead executors. Forgets folders that no longer exist. */
  public static void sweep() {
    List<Path> left = left();
    left.forEach(FolderSweep::atEnd);
    removeParents();
  }

  private static void sweepAtExit() {
    List<Path> left = left();
    FolderSweep.atExit(left, true);
    removeParents();
  }

  private static void removeParents() {
    APPLICATIONS.forEach(
        (application, executor) -> {
          FolderSweep.unfinished(application);
          ExecutorFolder.removeParents(executor);
        });
    APPLICATIONS.keySet().removeIf(application -> !Files.exists(application));
  }

  private static List<Path> left() {
    String bootId = ExecutorFolder.currentBootId();
    ANNOUNCED.removeIf(known -> !ExecutorFolder.isReachable(bootId, known.folder(), known.token()));
    return ANNOUNCED.stream().map(Announced::folder).toList();
  }
}
