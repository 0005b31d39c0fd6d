package io.weft.spark.rapids;

import com.nvidia.spark.rapids.shuffle.BounceBuffer;
import com.nvidia.spark.rapids.shuffle.PendingTransferRequest;
import com.nvidia.spark.rapids.shuffle.RapidsShuffleClient;
import com.nvidia.spark.rapids.shuffle.RapidsShuffleFetchHandler;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Tables that tasks wait for, until the budget and a bounce buffer let them be asked for. Servers
 * take turns, so that a large one does not hold up the others; what is asked of one server in one
 * go is about a bounce buffer's worth. Thread-safe. Owns its thread.
 */
final class Throttle implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(Throttle.class);
  private static final long CLOSE_MILLIS = 2000;

  /** As a guard only: whoever makes room says so. */
  private static final long LOOK_AGAIN_MILLIS = 1000;

  private final Receives receives;
  private final InflightBudget budget;
  private final BouncePool pool;
  private final Thread thread;
  private final Map<RapidsShuffleClient, Deque<PendingTransferRequest>> waiting =
      new LinkedHashMap<>();
  private long changes;
  private boolean closed;

  /** What is asked for in one go. */
  private record Batch(
      RapidsShuffleClient client,
      List<PendingTransferRequest> requests,
      BounceBuffer bounce,
      long bytes) {}

  /** A throttle whose thread is not started. */
  Throttle(Receives receives, InflightBudget budget, BouncePool pool, ThreadFactory threads) {
    this.receives = receives;
    this.budget = budget;
    this.pool = pool;
    this.thread = threads.newThread(this::run);
  }

  void start() {
    thread.start();
  }

  /** Adds tables that wait. */
  synchronized void add(List<PendingTransferRequest> requests) {
    if (closed) {
      throw new IllegalStateException("the transport was closed");
    }
    for (PendingTransferRequest request : requests) {
      waiting.computeIfAbsent(request.client(), client -> new ArrayDeque<>()).add(request);
    }
    changed();
  }

  /** Forgets what waits for this task; what was asked for goes on. */
  synchronized void cancel(RapidsShuffleFetchHandler handler) {
    waiting.values().forEach(queue -> queue.removeIf(each -> each.handler() == handler));
    boolean unused = waiting.values().removeIf(Deque::isEmpty);
  }

  /** There may be room. */
  synchronized void changed() {
    changes++;
    notifyAll();
  }

  /** How many tables wait. */
  synchronized int size() {
    return waiting.values().stream().mapToInt(Deque::size).sum();
  }

  private void run() {
    try {
      while (true) {
        long seen;
        synchronized (this) {
          if (closed) {
            return;
          }
          seen = changes;
        }
        Batch batch = next();
        if (batch == null) {
          await(seen);
        } else {
          issue(batch);
        }
      }
    } catch (InterruptedException e) {
      LOG.debug("The throttle ends", e);
    }
  }

  private synchronized void await(long seen) throws InterruptedException {
    if (changes == seen && !closed) {
      TimeUnit.MILLISECONDS.timedWait(this, LOOK_AGAIN_MILLIS);
    }
  }

  /** The next batch there is room for; null if there is none. */
  private synchronized Batch next() {
    for (Map.Entry<RapidsShuffleClient, Deque<PendingTransferRequest>> entry : waiting.entrySet()) {
      PendingTransferRequest first = entry.getValue().peek();
      if (!budget.tryTake(first.getLength())) {
        continue;
      }
      List<BounceBuffer> bounce = pool.tryTake(1, 1);
      if (bounce.isEmpty()) {
        budget.giveBack(first.getLength());
        return null;
      }
      return batch(entry.getKey(), entry.getValue(), bounce.get(0));
    }
    return null;
  }

  private Batch batch(
      RapidsShuffleClient client, Deque<PendingTransferRequest> queue, BounceBuffer bounce) {
    List<PendingTransferRequest> taken = new ArrayList<>();
    long bytes = queue.peek().getLength();
    taken.add(queue.remove());
    while (!queue.isEmpty()
        && bytes < pool.bufferBytes()
        && budget.tryTake(queue.peek().getLength())) {
      bytes += queue.peek().getLength();
      taken.add(queue.remove());
    }
    // To the end of the line.
    waiting.remove(client);
    if (!queue.isEmpty()) {
      waiting.put(client, queue);
    }
    return new Batch(client, taken, bounce, bytes);
  }

  private void issue(Batch batch) {
    try {
      receives.issue(batch.client(), batch.requests(), batch.bounce(), batch.bytes());
    } catch (RuntimeException | Error e) {
      LOG.error("Tables cannot be asked for", e);
      budget.giveBack(batch.bytes());
      batch.bounce().close();
      for (PendingTransferRequest request : batch.requests()) {
        request.handler().transferError("the table could not be asked for: " + e, e);
      }
    }
  }

  /** Ends the thread and forgets what waits. */
  @Override
  public void close() {
    synchronized (this) {
      closed = true;
      waiting.clear();
      notifyAll();
    }
    thread.interrupt();
    try {
      thread.join(CLOSE_MILLIS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
