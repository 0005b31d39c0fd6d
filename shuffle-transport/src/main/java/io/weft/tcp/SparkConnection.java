package io.weft.tcp;

import io.netty.channel.ChannelFuture;
import io.weft.wire.BlocksRefused;
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

/** A connection over Spark's transport. Thread-safe. */
final class SparkConnection implements PeerConnection {
  private final TransportClient client;
  private final Optional<InPlaceReads> inPlace;
  private final Turns turns = new Turns();

  SparkConnection(TransportClient client) {
    this.client = client;
    this.inPlace = InPlaceReads.of(client.getChannel());
  }

  @Override
  public void open(OpenBlocks request, Turn turn, RpcResponseCallback callback) {
    turns.begin(turn);
    client.sendRpc(
        request.encode(),
        new RpcResponseCallback() {
          @Override
          public void onSuccess(ByteBuffer answer) {
            // A busy peer may refuse again and again without progress.
            if (!BlocksRefused.isOne(answer)) {
              turns.moved(turn);
            }
            turns.end(turn);
            callback.onSuccess(answer);
          }

          @Override
          public void onFailure(Throwable cause) {
            turns.end(turn);
            callback.onFailure(cause);
          }
        });
  }

  @Override
  public void call(ServiceMessage question, RpcResponseCallback callback) {
    client.sendRpc(question.encode(), callback);
  }

  @Override
  public void receive(StreamId stream, Turn turn, StreamReceiver receiver) {
    turns.begin(turn);
    StreamCallback marking = new MarkingStream(receiver, turn);
    client.stream(
        stream.toString(),
        inPlace
            .<StreamCallback>map(reads -> new InPlaceStream(reads, receiver, marking))
            .orElse(marking));
  }

  /** Records progress when bytes of a stream arrive. */
  private final class MarkingStream implements StreamCallback {
    private final StreamReceiver receiver;
    private final Turn turn;

    MarkingStream(StreamReceiver receiver, Turn turn) {
      this.receiver = receiver;
      this.turn = turn;
    }

    @Override
    public void onData(String stream, ByteBuffer data) throws IOException {
      turns.moved(turn);
      receiver.onData(stream, data);
    }

    @Override
    public void onComplete(String stream) throws IOException {
      turns.end(turn);
      receiver.onComplete(stream);
    }

    @Override
    public void onFailure(String stream, Throwable cause) throws IOException {
      turns.end(turn);
      receiver.onFailure(stream, cause);
    }
  }

  /**
   * Tells the connection when a stream arrives and how many bytes are still to come. The first
   * bytes may come in the same buffer as the message that announces the stream.
   */
  private static final class InPlaceStream implements StreamCallback {
    private final InPlaceReads reads;
    private final StreamReceiver receiver;
    private final StreamCallback next;
    private long left;

    InPlaceStream(InPlaceReads reads, StreamReceiver receiver, StreamCallback next) {
      this.reads = reads;
      this.receiver = receiver;
      this.next = next;
      this.left = receiver.streamBytes();
    }

    @Override
    public void onData(String stream, ByteBuffer data) throws IOException {
      left -= data.remaining();
      reads.arriving(receiver, data.remaining(), left);
      next.onData(stream, data);
    }

    @Override
    public void onComplete(String stream) throws IOException {
      reads.arrived();
      next.onComplete(stream);
    }

    @Override
    public void onFailure(String stream, Throwable cause) throws IOException {
      reads.arrived();
      next.onFailure(stream, cause);
    }
  }

  @Override
  public long lastMoved() {
    return turns.lastMoved();
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
