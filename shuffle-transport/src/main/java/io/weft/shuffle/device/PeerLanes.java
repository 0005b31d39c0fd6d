package io.weft.shuffle.device;

import io.weft.device.Event;
import io.weft.device.HostEvent;
import io.weft.device.Lane;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Runs work in order for each peer, and work for different peers side by side. So a peer that does
 * not answer holds up its own work only. All peers share a limited number of daemon threads
 * "weft-device-requests-…", which end when they are idle.
 *
 * <p>Thread-safe.
 */
final class PeerLanes implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(PeerLanes.class);
  private static final long IDLE_SECONDS = 10;

  private final Duration timeout;
  private final ThreadPoolExecutor threads;

  /** The work of each peer; a peer without work has no entry. The first one is under way. */
  private final Map<String, Deque<Entry>> queues = new HashMap<>();

  private boolean closed;

  private record Entry(Lane.Work work, HostEvent event) {}

  /**
   * Creates lanes without threads.
   *
   * @param most threads, 1 or more: the peers that may be late without delaying others
   * @param timeout how long {@link #close} waits for work under way
   */
  PeerLanes(int most, Duration timeout) {
    this.timeout = timeout;
    AtomicInteger number = new AtomicInteger();
    this.threads =
        new ThreadPoolExecutor(
            most,
            most,
            IDLE_SECONDS,
            TimeUnit.SECONDS,
            new LinkedBlockingQueue<>(),
            task -> {
              Thread made = new Thread(task, "weft-device-requests-" + number.incrementAndGet());
              made.setDaemon(true);
              return made;
            });
    threads.allowCoreThreadTimeOut(true);
  }

  /**
   * Adds work for a peer, behind its earlier work.
   *
   * @param what the work, for messages
   * @return the end of the work; it fails with what the work throws
   * @throws IllegalStateException after the close
   */
  Event submit(String peer, String what, Lane.Work work) {
    Entry entry = new Entry(work, new HostEvent(what));
    synchronized (queues) {
      if (closed) {
        throw new IllegalStateException("the lanes to peers are closed and do not accept " + what);
      }
      Deque<Entry> queue = queues.computeIfAbsent(peer, each -> new ArrayDeque<>());
      queue.add(entry);
      if (queue.size() == 1) {
        start(peer);
      }
    }
    entry.event().record();
    return entry.event();
  }

  /** Starts the first work of a peer. The caller holds the lock. */
  private void start(String peer) {
    try {
      threads.execute(() -> runFirst(peer));
    } catch (RuntimeException | Error e) {
      // There may be no thread: the peer's work ends, and later work tries again.
      queues.remove(peer).forEach(entry -> entry.event().fail(e));
    }
  }

  private void runFirst(String peer) {
    Entry first;
    synchronized (queues) {
      first = queues.get(peer).element();
    }
    try {
      first.work().run();
      first.event().complete();
    } catch (Throwable e) {
      // Every failure goes to the thread that waits for the work.
      first.event().fail(e);
    } finally {
      goOn(peer);
    }
  }

  /** Lets other peers run before the next work of this peer. */
  private void goOn(String peer) {
    synchronized (queues) {
      Deque<Entry> queue = queues.get(peer);
      Entry unused = queue.remove();
      if (queue.isEmpty() || closed) {
        queues.remove(peer);
      } else {
        start(peer);
      }
    }
  }

  /** Fails the waiting work, interrupts the work under way, and waits for its end. */
  @Override
  public void close() {
    List<Entry> waiting = new ArrayList<>();
    synchronized (queues) {
      closed = true;
      queues.values().forEach(waiting::addAll);
    }
    List<Runnable> unused = threads.shutdownNow();
    waiting.forEach(
        entry ->
            entry
                .event()
                .fail(
                    new IllegalStateException(
                        "the lanes to peers were closed before the end of "
                            + entry.event().what())));
    try {
      if (!threads.awaitTermination(Math.max(1, timeout.toMillis()), TimeUnit.MILLISECONDS)) {
        LOG.warn("A request to a peer still runs {} after the close", timeout);
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
