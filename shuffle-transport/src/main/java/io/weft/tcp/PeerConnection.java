package io.weft.tcp;

import io.weft.wire.OpenBlocks;
import io.weft.wire.ServiceMessage;
import io.weft.wire.StreamId;
import org.apache.spark.network.client.RpcResponseCallback;

/**
 * A connection to a peer's block server, shared by the readers of this executor. Nothing blocks.
 * Thread-safe.
 */
public interface PeerConnection {
  /**
   * Asks for blocks; the answer, or the end of the connection, comes to the callback.
   *
   * @param turn is told what moves while the answer is to come, unless that grants nothing
   */
  void open(OpenBlocks request, Turn turn, RpcResponseCallback callback);

  /**
   * Asks a service of the peer; the answer, or the end of the connection, comes to the callback.
   */
  default void call(ServiceMessage question, RpcResponseCallback callback) {
    callback.onFailure(new UnsupportedOperationException("this connection carries blocks only"));
  }

  /**
   * Asks for the bytes of a stream. Streams of one connection come one after the other.
   *
   * @param turn is told what moves until the stream has ended
   */
  void receive(StreamId stream, Turn turn, StreamReceiver receiver);

  /** Tells the peer that a stream is not wanted. */
  void decline(StreamId stream);

  /**
   * When it was made, or an answer that grants blocks or bytes of any stream came over it last, as
   * {@link System#nanoTime()} has it. It may move while something that was asked for is lost: what
   * somebody waits for has a {@link Turn}.
   */
  long lastMoved();

  /** Whether it still works, as far as is known. */
  boolean isActive();

  /** Closes the connection without waiting; everything outstanding on it fails. */
  void abort();
}
