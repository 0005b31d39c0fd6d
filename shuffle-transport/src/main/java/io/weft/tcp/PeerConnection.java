package io.weft.tcp;

import io.netty.channel.ChannelFuture;
import io.weft.wire.CloseStream;
import io.weft.wire.OpenBlocks;
import io.weft.wire.StreamId;
import org.apache.spark.network.client.RpcResponseCallback;
import org.apache.spark.network.client.StreamCallback;
import org.apache.spark.network.client.TransportClient;

/** A connection to a peer's block server, shared by the readers of this executor. Thread-safe. */
public final class PeerConnection {
  private final TransportClient client;

  PeerConnection(TransportClient client) {
    this.client = client;
  }

  /** Asks for blocks; the answer, or the end of the connection, comes to the callback. */
  public void open(OpenBlocks request, RpcResponseCallback callback) {
    client.sendRpc(request.encode(), callback);
  }

  /** Asks for the bytes of a stream. Streams of one connection come one after the other. */
  public void receive(StreamId stream, StreamCallback callback) {
    client.stream(stream.toString(), callback);
  }

  /** Tells the peer that a stream is not wanted. */
  public void decline(StreamId stream) {
    client.send(new CloseStream(stream).encode());
  }

  boolean isActive() {
    return client.isActive();
  }

  /** Closes the connection without waiting; everything outstanding on it fails. */
  public void abort() {
    client.timeOut();
    ChannelFuture unused = client.getChannel().close();
  }
}
