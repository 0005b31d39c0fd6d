package io.weft.spark.executor;

import io.weft.host.LentFolder;
import java.io.IOException;
import java.nio.file.Files;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.locks.LockSupport;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The folders that this JVM's executor has lent to other processes, by the number under which the
 * driver releases them. A folder that is released while another process has a lock on its lease is
 * removed once it does not; a thread looks for that while there is such a folder.
 *
 * <p>Thread-safe.
 */
public final class LentFolders {
  private static final Logger LOG = LoggerFactory.getLogger(LentFolders.class);
  private static final long LOOK_NANOS = Duration.ofMillis(500).toNanos();

  private static final Map<Integer, List<Lent>> LENT = new HashMap<>();
  private static final List<Lent> RELEASED = new ArrayList<>();
  private static boolean looking;

  private LentFolders() {}

  /**
   * A folder, and what else its lease keeps.
   *
   * @param removed run when the lease is gone, once or more
   */
  private record Lent(LentFolder folder, Runnable removed) {}

  /** Keeps a folder until the number is released. */
  public static void keep(int number, LentFolder folder) {
    keep(number, folder, () -> {});
  }

  /**
   * As {@link #keep(int, LentFolder)}, of a folder whose lease keeps something else, too.
   *
   * @param removed gives that back; run when the lease was removed, on any thread, and maybe again
   */
  public static synchronized void keep(int number, LentFolder folder, Runnable removed) {
    LENT.computeIfAbsent(number, unused -> new ArrayList<>()).add(new Lent(folder, removed));
  }

  /** Removes the folders of a number, if there are any, or lets that happen later. */
  public static void release(int number) {
    synchronized (LentFolders.class) {
      List<Lent> released = LENT.remove(number);
      if (released == null) {
        return;
      }
      RELEASED.addAll(released);
    }
    removeReleased();
    lookIfNeeded();
  }

  /** As {@link #release(int)}, of one folder: that of a task which came to nothing after all. */
  public static void release(int number, LentFolder folder) {
    synchronized (LentFolders.class) {
      List<Lent> kept = LENT.getOrDefault(number, List.of());
      Optional<Lent> lent = kept.stream().filter(each -> each.folder() == folder).findFirst();
      if (lent.isEmpty()) {
        return;
      }
      kept.remove(lent.get());
      if (kept.isEmpty()) {
        LENT.remove(number);
      }
      RELEASED.add(lent.get());
    }
    removeReleased();
    lookIfNeeded();
  }

  private static synchronized void lookIfNeeded() {
    if (!RELEASED.isEmpty() && !looking) {
      looking = true;
      Thread thread = new Thread(LentFolders::look, "weft-lent-folders");
      thread.setDaemon(true);
      thread.start();
    }
  }

  private static void look() {
    do {
      LockSupport.parkNanos(LOOK_NANOS);
      removeReleased();
    } while (isMoreToRemove());
  }

  /** If not, the thread that asks ends: then the next release starts another. */
  private static synchronized boolean isMoreToRemove() {
    looking = !RELEASED.isEmpty();
    return looking;
  }

  /** Two threads may try the same folder: to one of them it looks held, or gone. */
  private static void removeReleased() {
    List<Lent> released;
    synchronized (LentFolders.class) {
      released = List.copyOf(RELEASED);
    }
    List<Lent> removed = released.stream().filter(LentFolders::isRemoved).toList();
    synchronized (LentFolders.class) {
      RELEASED.removeAll(removed);
    }
  }

  private static boolean isRemoved(Lent lent) {
    try {
      return lent.folder().removeUnlessHeld(lent.removed());
    } catch (IOException | RuntimeException e) {
      // Of any kind: the thread that looks has other folders, too.
      if (Files.exists(lent.folder().lease())) {
        LOG.debug("{} is not removed yet", lent.folder().path(), e);
        return false; // What its lease keeps is kept.
      }
      LOG.warn("{} was not removed: {}", lent.folder().path(), e.toString());
      return true; // What is left goes with the executor's folder.
    }
  }
}
