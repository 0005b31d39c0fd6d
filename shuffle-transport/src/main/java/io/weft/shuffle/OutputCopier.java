package io.weft.shuffle;

import io.weft.shuffle.ExchangeOptions.CopyOptions;
import io.weft.shuffle.peer.ExchangeCounter;
import io.weft.shuffle.peer.ExchangeCounters;
import io.weft.shuffle.store.BlockCatalog;
import io.weft.shuffle.store.BlockKey;
import io.weft.shuffle.store.CopiedOutput;
import io.weft.shuffle.store.OwnedOutput;
import io.weft.shuffle.store.OwnedOutput.OwnedHold;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.io.OutputStream;
import java.time.Duration;
import java.util.Comparator;
import java.util.Iterator;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Copies this executor's published map outputs to a store that outlives it, one after the other on
 * a thread of its own. Outputs of the latest shuffle come first: earlier shuffles have probably
 * been read. What waits is bounded in bytes and in age; beyond that, outputs are not copied.
 *
 * <p>A migrated or adopted output may have a copy by its former executor. It is copied again only
 * if the listener knows of none.
 *
 * <p>Owns the daemon thread "weft-copier", which ends at close. Thread-safe.
 */
final class OutputCopier implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(OutputCopier.class);
  private static final int NONE = -1;
  private static final Duration CLOSE_TIMEOUT = Duration.ofSeconds(5);

  /** The most likely to be needed comes first. */
  private static final Comparator<QueuedCopy> ORDER =
      Comparator.comparing((QueuedCopy waiting) -> waiting.requested == null)
          .thenComparingInt(waiting -> -waiting.key.shuffleId())
          .thenComparingLong(QueuedCopy::number);

  private final BlockCatalog catalog;
  private final CopyOptions options;
  private final ExchangeCounters counters;
  private final Thread thread = new Thread(this::run, "weft-copier");

  /** Guarded by its own monitor, as are the fields up to {@link #copying}. */
  private final TreeSet<QueuedCopy> queue = new TreeSet<>(ORDER);

  private long queuedBytes;
  private long lastNumber;
  private boolean closed;

  /** The shuffle whose output is being copied, or -1. */
  private int copying = NONE;

  /**
   * Outputs that this executor copies or has copied. Completed when the copy ends, exceptionally if
   * it failed, and with false if none was made, because the listener knew one.
   */
  private final Map<BlockKey, CompletableFuture<Boolean>> copies = new ConcurrentHashMap<>();

  /** Migrated and adopted outputs, which other executors have written. */
  private final Set<BlockKey> ofOthers = ConcurrentHashMap.newKeySet();

  /** Whether the last copy failed, so that only the first failure in a row is logged. */
  private volatile boolean failing;

  private volatile boolean skipped;

  /**
   * An output that waits.
   *
   * @param own whether this executor has written it, so that no other one has copied it
   * @param bytes that count as waiting; 0 for requests, and for outputs of other executors, of
   *     which most have copies
   * @param number in the order of arrival
   * @param since nanoseconds, as of {@code System.nanoTime}
   * @param requested completed when the copy ends; null if no caller waits for it
   */
  private record QueuedCopy(
      BlockKey key,
      boolean own,
      long bytes,
      long number,
      long since,
      CompletableFuture<Boolean> requested) {}

  /** Starts the thread. */
  OutputCopier(BlockCatalog catalog, CopyOptions options, ExchangeCounters counters) {
    this.catalog = catalog;
    this.options = options;
    this.counters = counters;
    thread.setDaemon(true);
    thread.start();
  }

  /**
   * Takes a published output. Returns at once.
   *
   * @param own whether this executor has written it
   */
  void published(OwnedOutput output, boolean own) {
    BlockKey key = output.index().key();
    long bytes = own ? output.index().storedBytes() : 0;
    int dropped;
    if (!own) {
      ofOthers.add(key);
    }
    synchronized (queue) {
      queue.add(new QueuedCopy(key, own, bytes, ++lastNumber, System.nanoTime(), null));
      queuedBytes += bytes;
      dropped = dropExcess();
      queue.notifyAll();
    }
    skip(dropped, "more bytes wait than may be in flight");
  }

  /** One output may exceed the limit alone. Returns the number of dropped outputs. */
  private int dropExcess() {
    int dropped = 0;
    Iterator<QueuedCopy> leastNeeded = queue.descendingIterator();
    while (queuedBytes > options.maxBytesInFlight()) {
      long bytes = leastNeeded.next().bytes();
      if (bytes == queuedBytes) {
        break;
      }
      if (bytes > 0) {
        leastNeeded.remove();
        queuedBytes -= bytes;
        dropped++;
      }
    }
    return dropped;
  }

  private void skip(int outputs, String reason) {
    if (outputs == 0) {
      return;
    }
    counters.add(ExchangeCounter.COPIES_SKIPPED, outputs);
    if (!skipped) {
      skipped = true;
      LOG.warn("Map outputs are left without a copy, because {}", reason);
    }
  }

  /**
   * Copies an output before those that wait, unless it was copied before, by any executor. Returns
   * when there is a copy; the driver then sends readers to it.
   *
   * @throws IOException if it is not copied within the timeout
   */
  void copyNow(BlockKey key, Duration timeout) throws IOException {
    CompletableFuture<Boolean> own = new CompletableFuture<>();
    CompletableFuture<Boolean> other = copies.putIfAbsent(key, own);
    if (other == null) {
      request(key, own);
    }
    boolean made;
    try {
      made = (other == null ? own : other).get(timeout.toMillis(), TimeUnit.MILLISECONDS);
    } catch (ExecutionException | TimeoutException e) {
      throw new IOException(key + " was not copied: " + e, e);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new InterruptedIOException(key + " was not copied: the thread was interrupted");
    }
    options.listener().copied(key, made, true);
  }

  private void request(BlockKey key, CompletableFuture<Boolean> requested) {
    boolean own = !ofOthers.contains(key);
    synchronized (queue) {
      if (closed) {
        requested.completeExceptionally(new IOException("the executor ends"));
      } else {
        queue.add(new QueuedCopy(key, own, 0, ++lastNumber, System.nanoTime(), requested));
        queue.notifyAll();
      }
    }
  }

  /** Forgets a removed shuffle. A copy in progress ends, because it keeps the shuffle's memory. */
  void removed(int shuffle) {
    synchronized (queue) {
      if (copying == shuffle) {
        thread.interrupt();
      }
      queue.removeIf(
          waiting -> {
            boolean ended = waiting.key.shuffleId() == shuffle;
            queuedBytes -= ended ? waiting.bytes : 0;
            return ended;
          });
    }
    ofOthers.removeIf(key -> key.shuffleId() == shuffle);
    copies
        .entrySet()
        .removeIf(
            copy -> {
              boolean ended = copy.getKey().shuffleId() == shuffle;
              if (ended) {
                copy.getValue().completeExceptionally(new IOException("its shuffle was removed"));
              }
              return ended;
            });
  }

  private void run() {
    try {
      while (true) {
        QueuedCopy next = next();
        try {
          copy(next);
        } catch (RuntimeException | Error e) {
          failed(next.key, e);
        } finally {
          ended();
        }
      }
    } catch (InterruptedException e) {
      LOG.debug("Map outputs are not copied any more", e);
    }
  }

  /** The interrupt of an ended copy must not reach the next one. */
  private void ended() {
    synchronized (queue) {
      copying = NONE;
      boolean unused = Thread.interrupted();
    }
  }

  private void copy(QueuedCopy next) {
    if (next.requested != null) {
      copy(next, next.requested);
    } else if (System.nanoTime() - next.since > options.maxAge().toNanos()) {
      skip(1, "they waited longer than the maximum age");
    } else if (catalog.contains(next.key)) {
      CompletableFuture<Boolean> own = new CompletableFuture<>();
      if (copies.putIfAbsent(next.key, own) == null && copy(next, own)) {
        options.listener().copied(next.key, true, false);
      }
    }
  }

  private QueuedCopy next() throws InterruptedException {
    synchronized (queue) {
      while (queue.isEmpty() && !closed) {
        queue.wait();
      }
      if (closed) {
        throw new InterruptedException("closed");
      }
      QueuedCopy next = queue.pollFirst();
      queuedBytes -= next.bytes;
      copying = next.key.shuffleId();
      return next;
    }
  }

  /**
   * Copies an output. An error must not end the thread. Returns whether this executor has made a
   * complete copy, and the output is still needed.
   */
  private boolean copy(QueuedCopy next, CompletableFuture<Boolean> done) {
    BlockKey key = next.key;
    try {
      if (!next.own && options.listener().isCopied(key)) {
        // Not remembered: the driver may forget that copy.
        copies.remove(key, done);
        done.complete(false);
        return false;
      }
      long bytes = write(key);
      if (!catalog.contains(key)) {
        delete(key);
        throw new IOException("its shuffle was removed meanwhile");
      }
      counters.increment(ExchangeCounter.OUTPUTS_COPIED);
      counters.add(ExchangeCounter.BYTES_COPIED, bytes);
      if (bytes > 0) {
        // An output without rows says nothing about the store.
        failing = false;
      }
      done.complete(true);
      return true;
    } catch (IOException | RuntimeException | Error e) {
      failed(key, e);
      copies.remove(key, done);
      done.completeExceptionally(e);
      return false;
    }
  }

  /** No task reads an output without rows, so it needs no file. */
  private long write(BlockKey key) throws IOException {
    try (OwnedHold hold = catalog.hold(key.shuffleId())) {
      OwnedOutput output = hold.owned(key);
      if (output.index().chunks() == 0) {
        return 0;
      }
      OutputStream out = options.store().create(key);
      boolean complete = false;
      try {
        try (out) {
          CopiedOutput.write(output, catalog.encryptor(), out);
        }
        complete = true;
      } finally {
        if (!complete) {
          delete(key);
        }
      }
      return output.index().storedBytes();
    }
  }

  /** Without the interrupt that has ended the copy, which would end the deletion, too. */
  private void delete(BlockKey key) throws IOException {
    boolean unused = Thread.interrupted();
    options.store().delete(key);
  }

  private void failed(BlockKey key, Throwable failure) {
    if (!catalog.contains(key)) {
      LOG.debug("{} is not copied", key, failure);
      return;
    }
    counters.increment(ExchangeCounter.COPIES_FAILED);
    if (failing) {
      LOG.debug("{} was not copied", key, failure);
    } else {
      LOG.warn("{} was not copied, and is computed again if it is lost", key, failure);
    }
    failing = true;
  }

  /** Ends the thread, a copy in progress included, and closes the store. */
  @Override
  public void close() {
    synchronized (queue) {
      closed = true;
      queue.notifyAll();
    }
    thread.interrupt();
    try {
      thread.join(CLOSE_TIMEOUT.toMillis());
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    copies.values().forEach(copy -> copy.completeExceptionally(new IOException("closed")));
    options.store().close();
  }
}
