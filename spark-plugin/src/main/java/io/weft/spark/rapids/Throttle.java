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
 * The tables that tasks wait for, until the budget and a bounce buffer allow their request. Servers
 * take turns, so that a large one does not delay the others. One request to a server fills about
 * one bounce buffer. Thread-safe. Owns its thread.
 */
final class Throttle implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(Throttle.class);
  private static final long CLOSE_MILLIS = 2000;

  /** A safeguard only: freed room is signalled. */
  private static final long RECHECK_MILLIS = 1000;

  private final Receives receives;
  private final InflightBudget budget;
  private final BouncePool pool;
  private final Thread thread;
  private final Map<RapidsShuffleClient, Deque<PendingTransferRequest>> waiting =
      new LinkedHashMap<>();
  private long changes;
  private boolean closed;

  /** The tables of one request. */
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

  /** Drops the waiting tables of this task. Requested tables go on. */
  synchronized void cancel(RapidsShuffleFetchHandler handler) {
    waiting.values().forEach(queue -> queue.removeIf(each -> each.handler() == handler));
    boolean unused = waiting.values().removeIf(Deque::isEmpty);
  }

  /** Signals that there may be room. */
  synchronized void changed() {
    changes++;
    notifyAll();
  }

  /** The number of waiting tables. */
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
      TimeUnit.MILLISECONDS.timedWait(this, RECHECK_MILLIS);
    }
  }

  /** The next batch that fits; null if there is none. */
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
    // Moves the client to the end of the queue.
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
      LOG.error("Tables cannot be requested", e);
      budget.giveBack(batch.bytes());
      batch.bounce().close();
      for (PendingTransferRequest request : batch.requests()) {
        request.handler().transferError("the table could not be requested: " + e, e);
      }
    }
  }

  /** Ends the thread and drops waiting tables. */
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

  /** Limits the bytes of requested tables that have not arrived. Thread-safe. */
  static final class InflightBudget {
    private final long limit;
    private long inflight;

    /** Creates a budget. A table that is larger than the limit is requested alone. */
    InflightBudget(long limit) {
      this.limit = limit;
    }

    /** Takes bytes of the budget if they fit. */
    synchronized boolean tryTake(long bytes) {
      if (inflight > 0 && inflight + bytes > limit) {
        return false;
      }
      inflight += bytes;
      return true;
    }

    synchronized void giveBack(long bytes) {
      inflight = Math.max(0, inflight - bytes);
    }

    synchronized long bytes() {
      return inflight;
    }
  }
}
