package io.weft.spark.feed.source;

import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import java.util.stream.Stream;
import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerApplicationEnd;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The exports of this driver that are not freed yet. One thread looks at their leases every second
 * while there are any, and has their manifests looked at. An export is freed when its lease is
 * over, or when its manifest was deleted or replaced.
 *
 * <p>A file system that does not answer delays only the exports in it: each export has at most one
 * thread that reads its manifest. Thread-safe.
 */
final class LiveExports {
  private static final Logger LOG = LoggerFactory.getLogger(LiveExports.class);
  private static final long POLL_NANOS = Duration.ofSeconds(1).toNanos();

  /** Time in which a manifest has to be deleted. Its export is freed in any case. */
  private static final long WITHDRAWAL_SECONDS = 5;

  private static final List<Live> LIVE = new ArrayList<>();
  private static final Set<SparkContext> LISTENED = new HashSet<>();
  private static boolean polling;

  /** Threads for file systems and executors. Idle ones end after a minute. */
  private static final ExecutorService THREADS =
      Executors.newCachedThreadPool(
          task -> {
            Thread thread = new Thread(task, "weft-exports-files");
            thread.setDaemon(true);
            return thread;
          });

  /**
   * By hash of a path: locked while a manifest of this driver is written, or compared and deleted.
   * Otherwise one export could delete the manifest that has just replaced its own.
   */
  private static final List<ReentrantLock> MANIFESTS =
      Stream.generate(ReentrantLock::new).limit(64).toList();

  private LiveExports() {}

  /**
   * An export.
   *
   * @param busy whether a thread reads its manifest
   */
  private record Live(LeasedExport export, AtomicBoolean busy) {}

  /**
   * Writes an export's manifest, keeps the export, and frees the one that it replaces.
   *
   * @param replace whether an earlier manifest is replaced
   * @throws org.apache.hadoop.fs.FileAlreadyExistsException if there is one that must not be
   */
  static void publish(LeasedExport export, boolean replace) throws IOException {
    listen(export.context());
    List<Live> replaced;
    ReentrantLock lock = lockOf(export);
    lock.lock();
    try {
      export.folder().publish(export.manifest(), replace);
      replaced = keep(export);
    } finally {
      lock.unlock();
    }
    replaced.forEach(live -> free(live.export()));
    pollIfNeeded();
  }

  private static ReentrantLock lockOf(LeasedExport export) {
    return MANIFESTS.get(Math.floorMod(export.path().hashCode(), MANIFESTS.size()));
  }

  private static synchronized List<Live> keep(LeasedExport export) {
    List<Live> replaced =
        LIVE.stream().filter(live -> live.export().path().equals(export.path())).toList();
    LIVE.removeAll(replaced);
    LIVE.add(new Live(export, new AtomicBoolean()));
    return replaced;
  }

  private static void listen(SparkContext context) {
    boolean isNew;
    synchronized (LiveExports.class) {
      isNew = LISTENED.add(context);
    }
    if (isNew) {
      context.addSparkListener(new EndListener(context));
    }
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
      live().forEach(LiveExports::check);
    } while (isAnyLive());
  }

  /** Does no I/O in the calling thread. */
  private static void check(Live live) {
    if (live.export().context().isStopped()) {
      endOnce(live, "its application has ended");
    } else if (live.export().isLeaseOver()) {
      endOnce(live, "its lease is over");
    } else if (live.busy().compareAndSet(false, true)) {
      THREADS.execute(
          () -> {
            try {
              if (!live.export().isPublished()) {
                endOnce(live, "its manifest was deleted or replaced");
              }
            } finally {
              live.busy().set(false);
            }
          });
    }
  }

  private static synchronized List<Live> live() {
    return List.copyOf(LIVE);
  }

  /** If none is left, the calling thread must end, and the next export starts another one. */
  private static synchronized boolean isAnyLive() {
    polling = !LIVE.isEmpty();
    return polling;
  }

  private static void endOnce(Live live, String reason) {
    synchronized (LiveExports.class) {
      if (!LIVE.remove(live)) {
        return;
      }
    }
    LOG.info("The export in {} is freed: {}", live.export().folder(), reason);
    THREADS.execute(
        () -> {
          await(withdraw(live.export()), live.export());
          free(live.export());
        });
  }

  private static CompletableFuture<Void> withdraw(LeasedExport export) {
    return CompletableFuture.runAsync(
        () -> {
          ReentrantLock lock = lockOf(export);
          lock.lock();
          try {
            export.withdraw();
          } finally {
            lock.unlock();
          }
        },
        THREADS);
  }

  private static void await(CompletableFuture<Void> withdrawal, LeasedExport export) {
    try {
      withdrawal.get(WITHDRAWAL_SECONDS, TimeUnit.SECONDS);
    } catch (TimeoutException e) {
      LOG.warn("The manifest in {} is not deleted after {} s", export.folder(), WITHDRAWAL_SECONDS);
    } catch (ExecutionException e) {
      LOG.warn("The manifest in {} is not deleted", export.folder(), e.getCause());
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  /**
   * Catches every exception, because other exports are still to be served. Spark also throws
   * checked ones that it does not declare.
   */
  private static void free(LeasedExport export) {
    try {
      export.export().close();
    } catch (Exception e) {
      LOG.warn(
          "Executors may keep the shards of the export in {} until the application ends: {}",
          export.folder(),
          e.toString());
    }
  }

  /** Returns the exports of an application that ends. */
  private static synchronized List<Live> forget(SparkContext context) {
    List<Live> ended = LIVE.stream().filter(live -> live.export().context() == context).toList();
    LIVE.removeAll(ended);
    LISTENED.remove(context);
    return ended;
  }

  /** Withdraws the manifests when the application ends; executors then free the shards. */
  private static final class EndListener extends SparkListener {
    private final SparkContext context;

    EndListener(SparkContext context) {
      this.context = context;
    }

    /** Waits a few seconds for file systems, once for all exports. */
    @Override
    public void onApplicationEnd(SparkListenerApplicationEnd end) {
      List<Live> ended = forget(context);
      if (!ended.isEmpty()) {
        CompletableFuture<?>[] withdrawals =
            ended.stream().map(live -> withdraw(live.export())).toArray(CompletableFuture[]::new);
        await(CompletableFuture.allOf(withdrawals), ended.get(0).export());
      }
    }
  }
}
