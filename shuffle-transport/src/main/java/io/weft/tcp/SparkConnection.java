package io.weft.tcp;

import io.netty.channel.ChannelFuture;
import io.weft.wire.CloseStream;
import io.weft.wire.OpenBlocks;
import io.weft.wire.StreamId;
import org.apache.spark.network.client.RpcResponseCallback;
import org.apache.spark.network.client.StreamCallback;
import org.apache.spark.network.client.TransportClient;

/** A connection on Spark's transport. Thread-safe. */
final class SparkConnection implements PeerConnection {
  private final TransportClient client;

  SparkConnection(TransportClient client) {
    this.client = client;
  }

  @Override
  public void open(OpenBlocks request, RpcResponseCallback callback) {
    client.sendRpc(request.encode(), callback);
  }

  @Override
  public void receive(StreamId stream, StreamCallback callback) {
    client.stream(stream.toString(), callback);
  }

  @Override
  public void decline(StreamId stream) {
    client.send(new CloseStream(stream).encode());
  }

  @Override
  public boolean isActive() {
    return client.isActive();
  }

  @Override
  public void abort() {
    client.timeOut();
    ChannelFuture unused = client.getChannel().close();
  }
}
