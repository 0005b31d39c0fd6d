package io.weft.spark.rapids;

import com.nvidia.spark.rapids.shuffle.MessageType;
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
 * One request, answer, send or receive. It ends once, with success or an error; then its callback
 * runs on the event thread. The receiver closes it. Thread-safe.
 */
final class RapidsTransaction implements Transaction {
  private static final Logger LOG = LoggerFactory.getLogger(RapidsTransaction.class);
  private static final double GIB = 1L << 30;
  private static final int MAX_HOURS = 1;

  /** Sends a server's answer to a request. */
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
   * A transaction that this executor starts.
   *
   * @param what names the transaction and both ends, for messages
   */
  static RapidsTransaction begin(
      String what, long peer, long header, TransactionCallback callback) {
    return new RapidsTransaction(what, peer, header, callback, null);
  }

  /** A complete request of a peer. */
  static RapidsTransaction request(
      String what, long peer, long header, TransactionCallback handler, Responder responder) {
    return new RapidsTransaction(what, peer, header, handler, responder);
  }

  /**
   * Ends it with success, on the event thread. Does nothing if it has ended.
   *
   * @param received the received message, or null; closed with this unless a caller takes it
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

  /** Ends it with an error, on the event thread. Does nothing if it has ended. */
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
      LOG.error("The callback of spark-rapids at the end of {} failed", what, e);
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
   * The duration and the bytes.
   *
   * @throws IllegalStateException if it has not succeeded
   */
  @Override
  public TransactionStats getStats() {
    if (stats == null) {
      throw new IllegalStateException(what + " has not succeeded: " + status);
    }
    return stats;
  }

  /**
   * Waits for its end and its callback. Its own deadline ends it long before this wait times out.
   */
  @Override
  public void waitForCompletion() {
    try {
      if (!done.await(MAX_HOURS, TimeUnit.HOURS)) {
        throw new IllegalStateException(what + " did not end within an hour");
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IllegalStateException("interrupted while waiting for " + what, e);
    }
  }

  /**
   * Takes the received message, which the caller closes.
   *
   * @throws IllegalStateException if there is no message, or it was taken
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
      throw new IllegalStateException(what + " is not a request of a peer and cannot be answered");
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

  /**
   * For example "the request of metadata of executor 1 to executor 2 (Success)", or the failure.
   */
  @Override
  public String toString() {
    return error == null ? what + " (" + status + ")" : error;
  }

  /** Names and checks of message types. Stateless. */
  static final class MessageNames {
    private MessageNames() {}

    static String request(int type) {
      if (type == MessageType.MetadataRequest().id()) {
        return "the request of metadata";
      }
      return type == MessageType.TransferRequest().id()
          ? "the request of tables"
          : "request " + type;
    }

    /**
     * Requires one of the two request types.
     *
     * @throws IllegalArgumentException for any other type
     */
    static int requireRequest(Enumeration.Value type) {
      if (type.equals(MessageType.MetadataRequest())
          || type.equals(MessageType.TransferRequest())) {
        return type.id();
      }
      throw new IllegalArgumentException(type + " is not a type of requests");
    }

    /**
     * Requires the type of blocks.
     *
     * @throws IllegalArgumentException for any other type
     */
    static void requireBuffer(Enumeration.Value type) {
      if (!type.equals(MessageType.Buffer())) {
        throw new IllegalArgumentException(type + " is not the type of blocks");
      }
    }
  }
}
