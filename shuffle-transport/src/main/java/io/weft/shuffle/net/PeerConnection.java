package io.weft.shuffle.net;

import io.weft.shuffle.net.OpenBlocks.StreamId;
import io.weft.shuffle.peer.PeerAddress;
import java.nio.ByteBuffer;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.network.client.RpcResponseCallback;
import org.apache.spark.network.client.StreamCallback;

/**
 * A connection to a peer's block server, shared by the readers of this executor. No method blocks.
 * Thread-safe.
 */
public interface PeerConnection {
  /**
   * Requests blocks. The callback gets the answer, or a failure if the connection ends.
   *
   * @param call tracks progress until the answer; a refusal does not count as progress
   */
  void open(OpenBlocks request, PendingCall call, RpcResponseCallback callback);

  /**
   * Calls a service of the peer. The callback gets the answer, or a failure if the connection ends.
   */
  default void call(ServiceMessage request, RpcResponseCallback callback) {
    callback.onFailure(new UnsupportedOperationException("this connection carries blocks only"));
  }

  /**
   * Requests the bytes of a stream. Streams of one connection arrive one after the other.
   *
   * @param call tracks progress until the stream ends
   */
  void receive(StreamId stream, PendingCall call, StreamReceiver receiver);

  /** Tells the peer to discard a stream. */
  void decline(StreamId stream);

  /**
   * The time of the last progress: the connection was created, an answer granted blocks, or bytes
   * of any stream arrived. In units of {@link System#nanoTime()}. The connection may make progress
   * although one request is lost, so each request also has a {@link PendingCall}.
   */
  long lastProgress();

  /** Whether the connection is open, as far as this end knows. */
  boolean isActive();

  /** Closes the connection without waiting. All outstanding requests fail. */
  void abort();

  /**
   * Receives the bytes of a stream. It lends its memory, so that the kernel can write the bytes
   * there without a buffer in between. Called on the connection's event loop only.
   */
  interface StreamReceiver extends StreamCallback {
    /**
     * The bytes of the whole stream on the wire, as the peer announced. Called before it arrives.
     */
    long streamBytes();

    /**
     * Lends memory for the next bytes of the stream, until {@link #bufferReturned}. {@link #onData}
     * receives these bytes like all others, in a buffer of this memory.
     *
     * @return a direct buffer; null if the connection shall use its own buffer
     */
    ByteBuffer lendBuffer();

    /**
     * Takes back memory that {@link #lendBuffer} lent. No thread uses it any more. Called once for
     * each lent buffer. Does not tell how many bytes were written.
     */
    void bufferReturned();
  }

  /** The source of connections to peers. Thread-safe. */
  @FunctionalInterface
  interface PeerConnections {
    /**
     * Returns a connection to a peer. Connects if there is no active connection. Does not block.
     *
     * @return completes exceptionally with an {@link java.io.IOException} if the peer cannot be
     *     reached or does not know the application's secret
     */
    CompletableFuture<PeerConnection> connect(PeerAddress peer);
  }

  /** The outstanding requests of a connection. Thread-safe. */
  static final class PendingCalls {
    private final Set<PendingCall> open = ConcurrentHashMap.newKeySet();
    private volatile long lastProgress = System.nanoTime();

    void begin(PendingCall call) {
      open.add(call);
    }

    /** Records progress of a request. */
    void progressed(PendingCall call) {
      long now = System.nanoTime();
      lastProgress = now;
      open.forEach(each -> each.progressed(call, now));
    }

    /** Ends a request. */
    void end(PendingCall call) {
      open.remove(call);
    }

    /** The time of the last progress of any request, or of creation. */
    long lastProgress() {
      return lastProgress;
    }
  }

  /**
   * Tracks the progress of one request on a shared connection. A connection answers requests in
   * their order. So a request is not lost while answers to earlier requests arrive. It is lost if
   * only answers to later requests arrive.
   *
   * <p>Requests are ordered by the clock. A request counts as later only if it was sent more than
   * the timeout later. This tolerates delays between reading the clock and writing to the socket,
   * and a peer that compresses several answers at a time. Thread-safe.
   */
  static final class PendingCall {
    private final long askedAt = System.nanoTime();
    private final long timeoutNanos;
    private volatile long lastProgress;

    /**
     * Tracks a request that is sent now.
     *
     * @param lastProgress time of its last progress so far, by {@link System#nanoTime()}
     * @param timeoutNanos the longest time without progress
     */
    public PendingCall(long lastProgress, long timeoutNanos) {
      this.lastProgress = lastProgress;
      this.timeoutNanos = timeoutNanos;
    }

    /** The time of the last progress of this request or of one before it. */
    public long lastProgress() {
      return lastProgress;
    }

    /** Records progress of a request, which may be this one. */
    void progressed(PendingCall other, long now) {
      if (other.askedAt - askedAt <= timeoutNanos) {
        lastProgress = now;
      }
    }
  }
}
