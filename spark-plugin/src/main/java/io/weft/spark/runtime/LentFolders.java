package io.weft.spark.runtime;

import io.weft.shuffle.store.LeasedFolder;
import java.io.IOException;
import java.nio.file.Files;
import java.time.Duration;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.locks.LockSupport;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The folders that this JVM's executor has lent to other processes. The driver releases a folder by
 * its number. If another process then still locks the folder's lease, a thread polls the lease and
 * removes the folder once it is unlocked.
 *
 * <p>Thread-safe.
 */
public final class LentFolders {
  private static final Logger LOG = LoggerFactory.getLogger(LentFolders.class);
  private static final long POLL_NANOS = Duration.ofMillis(500).toNanos();

  private static final Map<Integer, List<Lent>> LENT = new HashMap<>();
  private static final List<Lent> RELEASED = new ArrayList<>();

  /** The released numbers of the application, of which a task may still keep a folder. */
  private static final BitSet ENDED = new BitSet();

  private static boolean polling;

  private LentFolders() {}

  /**
   * A folder, and an action for its removal.
   *
   * @param removed run after the lease is removed, at least once
   */
  private record Lent(LeasedFolder folder, Runnable removed) {}

  /** Begins with an application, whose numbers may be those of the one before in this JVM. */
  static synchronized void begin() {
    ENDED.clear();
  }

  /** Keeps a folder until the number is released. */
  public static void keep(int number, LeasedFolder folder) {
    keep(number, folder, () -> {});
  }

  /**
   * Keeps a folder whose lease also protects another resource.
   *
   * @param removed frees that resource; run after the lease is removed, on any thread, at least
   *     once
   */
  public static synchronized void keep(int number, LeasedFolder folder, Runnable removed) {
    Lent lent = new Lent(folder, removed);
    if (ENDED.get(number)) {
      // The driver gave the export up while this task still worked on it.
      RELEASED.add(lent);
      pollIfNeeded();
    } else {
      LENT.computeIfAbsent(number, unused -> new ArrayList<>()).add(lent);
    }
  }

  /** Removes the folders of a number now, or later if they are leased. */
  public static void release(int number) {
    synchronized (LentFolders.class) {
      ENDED.set(number);
      List<Lent> released = LENT.remove(number);
      if (released == null) {
        return;
      }
      RELEASED.addAll(released);
    }
    removeReleased();
    pollIfNeeded();
  }

  /** Releases one folder, of a task that failed. */
  public static void release(int number, LeasedFolder folder) {
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
    pollIfNeeded();
  }

  private static synchronized void pollIfNeeded() {
    if (!RELEASED.isEmpty() && !polling) {
      polling = true;
      Thread thread = new Thread(LentFolders::poll, "weft-lent-folders");
      thread.setDaemon(true);
      thread.start();
    }
  }

  private static void poll() {
    do {
      LockSupport.parkNanos(POLL_NANOS);
      removeReleased();
    } while (isMoreToRemove());
  }

  /**
   * Whether folders are left. If not, the calling thread must end, and the next release starts
   * another one.
   */
  private static synchronized boolean isMoreToRemove() {
    polling = !RELEASED.isEmpty();
    return polling;
  }

  /** Two threads may try the same folder. One of them then finds it locked or removed. */
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
      return lent.folder().removeUnlessLocked(lent.removed());
    } catch (IOException | RuntimeException e) {
      // Catches every exception, because the thread also serves other folders.
      if (Files.exists(lent.folder().lease())) {
        LOG.debug("{} is not removed yet", lent.folder().path(), e);
        return false; // Its lease is still in use.
      }
      LOG.warn("{} was not removed: {}", lent.folder().path(), e.toString());
      return true; // The rest is removed with the executor's folder.
    }
  }
}
