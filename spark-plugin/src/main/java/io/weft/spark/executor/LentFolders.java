package io.weft.spark.executor;

import io.weft.host.LentFolder;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
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

  private static final Map<Integer, List<LentFolder>> LENT = new HashMap<>();
  private static final List<LentFolder> RELEASED = new ArrayList<>();
  private static boolean looking;

  private LentFolders() {}

  /** Keeps a folder until the number is released. */
  public static synchronized void keep(int number, LentFolder folder) {
    LENT.computeIfAbsent(number, unused -> new ArrayList<>()).add(folder);
  }

  /** Removes the folders of a number, if there are any, or lets that happen later. */
  public static void release(int number) {
    synchronized (LentFolders.class) {
      List<LentFolder> released = LENT.remove(number);
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
      List<LentFolder> kept = LENT.get(number);
      if (kept == null || !kept.remove(folder)) {
        return;
      }
      if (kept.isEmpty()) {
        LENT.remove(number);
      }
      RELEASED.add(folder);
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
    List<LentFolder> released;
    synchronized (LentFolders.class) {
      released = List.copyOf(RELEASED);
    }
    List<LentFolder> removed = released.stream().filter(LentFolders::isRemoved).toList();
    synchronized (LentFolders.class) {
      RELEASED.removeAll(removed);
    }
  }

  private static boolean isRemoved(LentFolder folder) {
    try {
      return folder.removeUnlessHeld();
    } catch (IOException | RuntimeException e) {
      // Of any kind: the thread that looks has other folders, too.
      LOG.warn("{} was not removed: {}", folder.path(), e.toString());
      return true; // What is left goes with the executor's folder.
    }
  }
}
