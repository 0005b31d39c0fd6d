package io.weft.collectives.clique;

import io.weft.device.Deadline;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Aborts communicators concurrently, each on a daemon thread "weft-clique-abort-…". */
final class ConcurrentAborts {
  private static final Logger LOG = LoggerFactory.getLogger(ConcurrentAborts.class);
  private static final Duration TIMEOUT = Duration.ofSeconds(30);
  private static final AtomicLong THREADS = new AtomicLong();

  private ConcurrentAborts() {}

  /**
   * Returns when all are aborted, or after a timeout. Each is closed once aborted and no longer
   * leased.
   */
  static void run(List<CachedCommunicator> communicators, String reason) {
    List<Thread> threads = new ArrayList<>();
    for (CachedCommunicator cached : communicators) {
      Thread thread =
          new Thread(
              () -> {
                cached.communicator().abort(reason);
                cached.retire();
              },
              "weft-clique-abort-" + THREADS.incrementAndGet());
      thread.setDaemon(true);
      thread.start();
      threads.add(thread);
    }
    Deadline deadline = Deadline.after(TIMEOUT);
    threads.forEach(thread -> join(thread, deadline));
  }

  private static void join(Thread thread, Deadline deadline) {
    try {
      thread.join(Math.max(1, deadline.remainingNanos() / 1_000_000L));
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    if (thread.isAlive()) {
      LOG.warn("{} has not aborted its communicator after {}", thread.getName(), deadline);
    }
  }
}
