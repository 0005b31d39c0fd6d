package io.weft.tcp;

import io.netty.channel.ChannelFuture;
import io.weft.wire.CloseStream;
import io.weft.wire.OpenBlocks;
import io.weft.wire.ServiceMessage;
import io.weft.wire.StreamId;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Optional;
import org.apache.spark.network.client.RpcResponseCallback;
import org.apache.spark.network.client.StreamCallback;
import org.apache.spark.network.client.TransportClient;

/** A connection on Spark's transport. Thread-safe. */
final class SparkConnection implements PeerConnection {
  private final TransportClient client;
  private final Optional<InPlaceReads> inPlace;

  SparkConnection(TransportClient client) {
    this.client = client;
    this.inPlace = InPlaceReads.of(client.getChannel());
  }

  @Override
  public void open(OpenBlocks request, RpcResponseCallback callback) {
    client.sendRpc(request.encode(), callback);
  }

  @Override
  public void call(ServiceMessage question, RpcResponseCallback callback) {
    client.sendRpc(question.encode(), callback);
  }

  @Override
  public void receive(StreamId stream, StreamReceiver receiver) {
    client.stream(
        stream.toString(),
        inPlace.<StreamCallback>map(reads -> new InPlaceStream(reads, receiver)).orElse(receiver));
  }

  /**
   * Lets the connection know when a stream arrives. Its beginning comes with the message that
   * announces it.
   */
  private record InPlaceStream(InPlaceReads reads, StreamReceiver receiver)
      implements StreamCallback {
    @Override
    public void onData(String stream, ByteBuffer data) throws IOException {
      reads.arriving(receiver);
      receiver.onData(stream, data);
    }

    @Override
    public void onComplete(String stream) throws IOException {
      reads.arrived();
      receiver.onComplete(stream);
    }

    @Override
    public void onFailure(String stream, Throwable cause) throws IOException {
      reads.arrived();
      receiver.onFailure(stream, cause);
    }
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
