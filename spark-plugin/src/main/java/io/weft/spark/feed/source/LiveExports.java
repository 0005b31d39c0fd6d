package io.weft.spark.feed.source;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.locks.LockSupport;
import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerApplicationEnd;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The exports of this driver that are not freed yet. One thread looks at their leases and manifests
 * every second while there are any. It frees an export when its lease is over, or when its manifest
 * was deleted or replaced. Thread-safe.
 */
final class LiveExports {
  private static final Logger LOG = LoggerFactory.getLogger(LiveExports.class);
  private static final long POLL_NANOS = Duration.ofSeconds(1).toNanos();

  private static final List<LeasedExport> LIVE = new ArrayList<>();
  private static final Set<SparkContext> LISTENED = new HashSet<>();
  private static boolean polling;

  private LiveExports() {}

  /** Keeps a published export, and ends the one that it replaces. */
  static void keep(LeasedExport export) {
    List<LeasedExport> replaced;
    boolean listen;
    synchronized (LiveExports.class) {
      replaced = LIVE.stream().filter(live -> live.path().equals(export.path())).toList();
      LIVE.removeAll(replaced);
      LIVE.add(export);
      listen = LISTENED.add(export.context());
    }
    if (listen) {
      export.context().addSparkListener(new EndListener(export.context()));
    }
    replaced.forEach(LiveExports::end);
    pollIfNeeded();
  }

  private static synchronized void pollIfNeeded() {
    if (!LIVE.isEmpty() && !polling) {
      polling = true;
      Thread thread = new Thread(LiveExports::poll, "weft-exports");
      thread.setDaemon(true);
      thread.start();
    }
  }

  private static void poll() {
    do {
      LockSupport.parkNanos(POLL_NANOS);
      for (LeasedExport export : live()) {
        if (export.isLeaseOver()) {
          endOnce(export, "its lease is over");
        } else if (!export.isPublished()) {
          endOnce(export, "its manifest was deleted or replaced");
        }
      }
    } while (isAnyLive());
  }

  private static synchronized List<LeasedExport> live() {
    return List.copyOf(LIVE);
  }

  /** If none is left, the calling thread must end, and the next export starts another one. */
  private static synchronized boolean isAnyLive() {
    polling = !LIVE.isEmpty();
    return polling;
  }

  private static void endOnce(LeasedExport export, String reason) {
    boolean live;
    synchronized (LiveExports.class) {
      live = LIVE.remove(export);
    }
    if (live) {
      LOG.info("The export in {} is freed: {}", export.folder(), reason);
      end(export);
    }
  }

  /**
   * Catches every exception, because other exports are still to be served. Spark also throws
   * checked ones that it does not declare.
   */
  private static void end(LeasedExport export) {
    try {
      export.end();
    } catch (Exception e) {
      LOG.warn(
          "Executors may keep the files of the export in {} until the application ends: {}",
          export.folder(),
          e.toString());
    }
  }

  /** Returns the exports of an application that ends. */
  private static synchronized List<LeasedExport> forget(SparkContext context) {
    List<LeasedExport> ended = LIVE.stream().filter(live -> live.context() == context).toList();
    LIVE.removeAll(ended);
    LISTENED.remove(context);
    return ended;
  }

  /** Withdraws the manifests when the application ends; executors then free the files. */
  private static final class EndListener extends SparkListener {
    private final SparkContext context;

    EndListener(SparkContext context) {
      this.context = context;
    }

    @Override
    public void onApplicationEnd(SparkListenerApplicationEnd end) {
      forget(context).forEach(LeasedExport::withdraw);
    }
  }
}
