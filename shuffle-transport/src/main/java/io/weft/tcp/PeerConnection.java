package io.weft.tcp;

import io.weft.wire.OpenBlocks;
import io.weft.wire.ServiceMessage;
import io.weft.wire.StreamId;
import org.apache.spark.network.client.RpcResponseCallback;

/**
 * A connection to a peer's block server, shared by the readers of this executor. No method blocks.
 * Thread-safe.
 */
public interface PeerConnection {
  /**
   * Requests blocks. The callback gets the answer, or a failure if the connection ends.
   *
   * @param turn tracks progress until the answer; a refusal does not count as progress
   */
  void open(OpenBlocks request, Turn turn, RpcResponseCallback callback);

  /**
   * Calls a service of the peer. The callback gets the answer, or a failure if the connection ends.
   */
  default void call(ServiceMessage question, RpcResponseCallback callback) {
    callback.onFailure(new UnsupportedOperationException("this connection carries blocks only"));
  }

  /**
   * Requests the bytes of a stream. Streams of one connection arrive one after the other.
   *
   * @param turn tracks progress until the stream ends
   */
  void receive(StreamId stream, Turn turn, StreamReceiver receiver);

  /** Tells the peer to discard a stream. */
  void decline(StreamId stream);

  /**
   * The time of the last progress: the connection was created, an answer granted blocks, or bytes
   * of any stream arrived. In units of {@link System#nanoTime()}. The connection may make progress
   * although one request is lost, so each request also has a {@link Turn}.
   */
  long lastMoved();

  /** Whether the connection is open, as far as this end knows. */
  boolean isActive();

  /** Closes the connection without waiting. All outstanding requests fail. */
  void abort();
}
