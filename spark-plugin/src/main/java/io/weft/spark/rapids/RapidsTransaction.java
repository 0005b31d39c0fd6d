package io.weft.spark.rapids;

import com.nvidia.spark.rapids.shuffle.MetadataTransportBuffer;
import com.nvidia.spark.rapids.shuffle.Transaction;
import com.nvidia.spark.rapids.shuffle.TransactionCallback;
import com.nvidia.spark.rapids.shuffle.TransactionStats;
import com.nvidia.spark.rapids.shuffle.TransactionStatus;
import java.nio.ByteBuffer;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Enumeration;
import scala.Option;

/**
 * One request, answer, send or receive. It ends once, with success or an error, and then its
 * callback runs, on the event thread; who got it closes it. Thread-safe.
 */
final class RapidsTransaction implements Transaction {
  private static final Logger LOG = LoggerFactory.getLogger(RapidsTransaction.class);
  private static final double GIB = 1L << 30;
  private static final int MOST_HOURS = 1;

  /** What a server answers a request with. */
  interface Responder {
    Transaction respond(ByteBuffer response, TransactionCallback callback);
  }

  private final String what;
  private final long peer;
  private final long header;
  private final TransactionCallback callback;
  private final Responder responder;
  private final long start = System.nanoTime();
  private final CountDownLatch done = new CountDownLatch(1);

  private volatile Enumeration.Value status = TransactionStatus.InProgress();
  private volatile String error;
  private volatile TransactionStats stats;
  private MetadataTransportBuffer message;
  private boolean ended;
  private boolean closed;

  private RapidsTransaction(
      String what, long peer, long header, TransactionCallback callback, Responder responder) {
    this.what = what;
    this.peer = peer;
    this.header = header;
    this.callback = callback;
    this.responder = responder;
  }

  /**
   * A transaction of this executor's own.
   *
   * @param what it is, with both ends, for failures
   */
  static RapidsTransaction begin(
      String what, long peer, long header, TransactionCallback callback) {
    return new RapidsTransaction(what, peer, header, callback, null);
  }

  /** A peer's request, which has come whole. */
  static RapidsTransaction request(
      String what, long peer, long header, TransactionCallback handler, Responder responder) {
    return new RapidsTransaction(what, peer, header, handler, responder);
  }

  /**
   * Ends it well; on the event thread. Nothing happens if it has ended.
   *
   * @param received what came, or null; closed with this if nobody takes it
   */
  void succeed(MetadataTransportBuffer received, long sentBytes, long receivedBytes) {
    synchronized (this) {
      if (ended) {
        if (received != null) {
          received.close();
        }
        return;
      }
      ended = true;
      message = received;
    }
    double seconds = Math.max(1, System.nanoTime() - start) / 1e9;
    stats =
        new TransactionStats(
            seconds * 1e3,
            sentBytes,
            receivedBytes,
            sentBytes / GIB / seconds,
            receivedBytes / GIB / seconds);
    status = TransactionStatus.Success();
    call();
  }

  /** Ends it with an error; on the event thread. Nothing happens if it has ended. */
  void fail(String reason) {
    synchronized (this) {
      if (ended) {
        return;
      }
      ended = true;
    }
    error = what + " failed: " + reason;
    LOG.debug("{}", error);
    status = TransactionStatus.Error();
    call();
  }

  private void call() {
    try {
      callback.apply(this);
    } catch (RuntimeException | Error e) {
      LOG.error("What spark-rapids does at the end of {} failed", what, e);
      error = "the callback of " + what + " failed: " + e;
      status = TransactionStatus.Error();
    } finally {
      done.countDown();
    }
  }

  @Override
  public long peerExecutorId() {
    return peer;
  }

  @Override
  public long getHeader() {
    return header;
  }

  @Override
  public Enumeration.Value getStatus() {
    return status;
  }

  @Override
  public Option<String> getErrorMessage() {
    return Option.apply(error);
  }

  /**
   * How long it took and how much it moved.
   *
   * @throws IllegalStateException when it has not succeeded
   */
  @Override
  public TransactionStats getStats() {
    if (stats == null) {
      throw new IllegalStateException(what + " has not succeeded: " + status);
    }
    return stats;
  }

  /**
   * Waits for its end and its callback. It ends by a deadline of its own, long before this gives
   * up.
   */
  @Override
  public void waitForCompletion() {
    try {
      if (!done.await(MOST_HOURS, TimeUnit.HOURS)) {
        throw new IllegalStateException(what + " did not end within an hour");
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IllegalStateException("interrupted while waiting for " + what, e);
    }
  }

  /**
   * What came; the caller's to close from now on.
   *
   * @throws IllegalStateException when there is nothing, or somebody took it
   */
  @Override
  public synchronized MetadataTransportBuffer releaseMessage() {
    if (message == null) {
      throw new IllegalStateException(what + " has no message (" + status + ")");
    }
    MetadataTransportBuffer taken = message;
    message = null;
    return taken;
  }

  @Override
  public Transaction respond(ByteBuffer response, TransactionCallback callback) {
    if (responder == null) {
      throw new IllegalStateException(what + " is no request of a peer, it cannot be answered");
    }
    return responder.respond(response, callback);
  }

  @Override
  public void close() {
    MetadataTransportBuffer left;
    synchronized (this) {
      if (closed) {
        return;
      }
      closed = true;
      left = message;
      message = null;
    }
    if (left != null) {
      left.close();
    }
  }

  /** Such as "the request of metadata of executor 1 to executor 2 (Success)", or the failure. */
  @Override
  public String toString() {
    return error == null ? what + " (" + status + ")" : error;
  }
}
