package io.weft.shuffle.net;

import io.netty.channel.Channel;
import io.netty.channel.ChannelFuture;
import io.netty.util.AttributeKey;
import io.weft.shuffle.net.OpenBlocks.StreamId;
import io.weft.shuffle.store.OwnedOutput;
import io.weft.shuffle.store.OwnedOutput.OwnedHold;
import java.nio.ByteBuffer;
import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.network.client.TransportClient;
import org.apache.spark.network.server.StreamManager;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The streams that are open for peers and not fully sent. A peer can request a stream once, on the
 * connection that opened it. A stream is closed when it was sent or declined, when its connection
 * ends, or when the peer does not request it in time. If a peer receives nothing for too long, its
 * connection is closed. Thread-safe.
 */
final class ServedStreams extends StreamManager {
  private static final Logger LOG = LoggerFactory.getLogger(ServedStreams.class);

  /** The time when the channel last finished sending a stream. Unset before the first one. */
  private static final AttributeKey<Long> LAST_SENT = AttributeKey.valueOf("weft-stream-sent");

  private final ConcurrentHashMap<String, ServedStream> waiting = new ConcurrentHashMap<>();
  private final ConcurrentHashMap<String, ServedStream> sending = new ConcurrentHashMap<>();
  private final SecureRandom random = new SecureRandom();
  private final int tlsPieceBytes;

  ServedStreams(int tlsPieceBytes) {
    this.tlsPieceBytes = tlsPieceBytes;
  }

  /** Takes ownership of a stream. */
  StreamId register(ServedStream stream) {
    StreamId id = new StreamId(random.nextLong(), random.nextLong());
    waiting.put(id.toString(), stream);
    return id;
  }

  /** Closes a stream that its peer declines. */
  void decline(StreamId id, Channel channel) {
    ServedStream stream = waiting.get(id.toString());
    if (stream != null && stream.channel() == channel && waiting.remove(id.toString(), stream)) {
      stream.close();
    }
  }

  /**
   * Closes streams that their peers did not request, and connections whose peers requested a stream
   * but receive nothing. The connection is closed because its event loop may be about to send. A
   * peer can request a stream only after it has the answer, which may wait behind other streams. So
   * a stream is not late while others on its channel make progress. Bytes in the sockets' buffers
   * count as sent. They must reach the peer within the timeout.
   *
   * @param nanos the timeout without progress
   * @param now the current {@link System#nanoTime()}
   */
  void dropStalled(long nanos, long now) {
    Map<Channel, Long> youngest = new HashMap<>();
    sending.values().forEach(s -> youngest.merge(s.channel(), now - s.lastProgress(), Math::min));
    waiting.forEach(
        (id, stream) -> {
          if (Math.min(now - stream.lastProgress(), idle(stream.channel(), now, youngest)) > nanos
              && waiting.remove(id, stream)) {
            LOG.warn(
                "A peer at {} did not request the stream that it had opened", stream.channel());
            stream.close();
          }
        });
    youngest.forEach(
        (channel, idle) -> {
          if (idle > nanos) {
            LOG.warn(
                "A peer receives nothing of the stream that it requested; {} is closed", channel);
            ChannelFuture unused = channel.close();
          }
        });
  }

  /** How long no stream of a channel has made progress. */
  private static long idle(Channel channel, long now, Map<Channel, Long> youngest) {
    Long lastSent = channel.attr(LAST_SENT).get();
    long sinceSent = lastSent == null ? Long.MAX_VALUE : now - lastSent;
    return Math.min(sinceSent, youngest.getOrDefault(channel, Long.MAX_VALUE));
  }

  /** The number of streams that hold memory now. */
  int open() {
    return waiting.size() + sending.size();
  }

  @Override
  public ManagedBuffer getChunk(long streamId, int chunkIndex) {
    throw new UnsupportedOperationException("Weft sends streams, not chunks of them");
  }

  @Override
  public void checkAuthorization(TransportClient client, String streamId) {
    ServedStream stream = waiting.get(streamId);
    if (stream != null && stream.channel() != client.getChannel()) {
      throw new SecurityException("stream " + streamId + " was opened on another connection");
    }
  }

  @Override
  public ManagedBuffer openStream(String streamId) {
    ServedStream stream = waiting.remove(streamId);
    if (stream == null) {
      return null;
    }
    stream.progressed();
    sending.put(streamId, stream);
    return new StreamBuffer(stream, tlsPieceBytes);
  }

  @Override
  public void streamSent(String streamId) {
    ServedStream stream = sending.remove(streamId);
    if (stream != null) {
      stream.channel().attr(LAST_SENT).set(System.nanoTime());
      stream.close();
    }
  }

  @Override
  public void connectionTerminated(Channel channel) {
    closeAll(waiting, channel);
    closeAll(sending, channel);
  }

  private static void closeAll(ConcurrentHashMap<String, ServedStream> streams, Channel channel) {
    streams.forEach(
        (id, stream) -> {
          if (stream.channel() == channel && streams.remove(id, stream)) {
            stream.close();
          }
        });
  }

  /**
   * The chunks of one answer that is being sent to a peer. Holds their shuffles, compressed copies
   * and a part of the budget until {@link #close()}. Thread-safe once filled.
   */
  static final class ServedStream implements AutoCloseable {
    private final Channel channel;
    private final Collection<OwnedHold> holds;
    private final BlockCompressor compressor;
    private final List<Piece> pieces = new ArrayList<>();
    private final AtomicBoolean open = new AtomicBoolean(true);
    private Runnable onClose = () -> {};
    private long bytes;
    private volatile long lastProgress = System.nanoTime();

    /**
     * One chunk and where it starts in the stream.
     *
     * @param compressed null if the chunk is sent uncompressed
     */
    record Piece(
        OwnedOutput output,
        int chunk,
        BlockCompressor.Compressed compressed,
        long start,
        long length) {}

    /**
     * Creates a stream for the peer at the other end of a channel.
     *
     * @param holds closed with the stream; may grow until then
     */
    ServedStream(Channel channel, Collection<OwnedHold> holds, BlockCompressor compressor) {
      this.channel = channel;
      this.holds = holds;
      this.compressor = compressor;
    }

    /** Adds a chunk. Takes ownership of its compressed copy, which may be null. */
    void add(OwnedOutput output, int chunk, BlockCompressor.Compressed compressed) {
      long length = compressed == null ? output.index().storedBytes(chunk) : compressed.bytes();
      pieces.add(new Piece(output, chunk, compressed, bytes, length));
      bytes += length;
    }

    /** Sets an action that runs when the stream is closed, after the memory is released. */
    void onClose(Runnable action) {
      onClose = action;
    }

    Channel channel() {
      return channel;
    }

    List<Piece> pieces() {
      return pieces;
    }

    /** The bytes of a piece in the form in which they are sent. */
    ByteBuffer view(Piece piece) {
      return piece.compressed() == null
          ? piece.output().view(piece.chunk())
          : compressor.view(piece.compressed());
    }

    long bytes() {
      return bytes;
    }

    /** Records that bytes were sent. */
    void progressed() {
      lastProgress = System.nanoTime();
    }

    /**
     * The time when bytes were last sent, or the stream was opened, by {@link System#nanoTime()}.
     */
    long lastProgress() {
      return lastProgress;
    }

    /** Releases the memory. No byte may be sent afterwards. Can be repeated. */
    @Override
    public void close() {
      if (open.getAndSet(false)) {
        holds.forEach(OwnedHold::close);
        for (Piece piece : pieces) {
          if (piece.compressed() != null) {
            compressor.free(piece.compressed());
          }
        }
        onClose.run();
      }
    }
  }
}
