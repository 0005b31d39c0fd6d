package io.weft.tcp;

import io.netty.channel.Channel;
import io.netty.channel.ChannelFuture;
import io.netty.util.AttributeKey;
import io.weft.wire.StreamId;
import java.security.SecureRandom;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.network.client.TransportClient;
import org.apache.spark.network.server.StreamManager;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The streams that were opened for peers and are not sent to their end. A stream can be asked for
 * once, on the connection it was opened on. It is closed when it was sent, declined, or its
 * connection ended, which happens to a connection whose peer takes nothing for too long; one that
 * is not asked for in time is closed, too. Thread-safe.
 */
final class ServedStreams extends StreamManager {
  private static final Logger LOG = LoggerFactory.getLogger(ServedStreams.class);

  /** When a stream was sent to its end last, for channels on which that has happened. */
  private static final AttributeKey<Long> LAST_SENT = AttributeKey.valueOf("weft-stream-sent");

  private final ConcurrentHashMap<String, ServedStream> waiting = new ConcurrentHashMap<>();
  private final ConcurrentHashMap<String, ServedStream> sending = new ConcurrentHashMap<>();
  private final SecureRandom random = new SecureRandom();
  private final int tlsPieceBytes;

  ServedStreams(int tlsPieceBytes) {
    this.tlsPieceBytes = tlsPieceBytes;
  }

  /** Takes a stream over. */
  StreamId register(ServedStream stream) {
    StreamId id = new StreamId(random.nextLong(), random.nextLong());
    waiting.put(id.toString(), stream);
    return id;
  }

  /** Closes a stream that is not wanted by the peer it was opened for. */
  void decline(StreamId id, Channel channel) {
    ServedStream stream = waiting.get(id.toString());
    if (stream != null && stream.channel() == channel && waiting.remove(id.toString(), stream)) {
      stream.close();
    }
  }

  /**
   * Lets go of streams that their peers do not ask for, or do not take although they asked. In the
   * second case the connection is closed, as its event loop may be about to send. A peer can ask
   * only when it has the answer, which may be behind other streams: as long as these move, it is
   * not late. What lies in the sockets' buffers has moved as far as this end can see; it has to
   * reach the peer within that time.
   *
   * @param nanos how long nothing may happen
   * @param now as {@link System#nanoTime()} has it
   */
  void dropStalled(long nanos, long now) {
    Map<Channel, Long> youngest = new HashMap<>();
    sending.values().forEach(s -> youngest.merge(s.channel(), now - s.lastProgress(), Math::min));
    waiting.forEach(
        (id, stream) -> {
          if (Math.min(now - stream.lastProgress(), idle(stream.channel(), now, youngest)) > nanos
              && waiting.remove(id, stream)) {
            LOG.warn("A peer at {} did not ask for what it had opened", stream.channel());
            stream.close();
          }
        });
    youngest.forEach(
        (channel, idle) -> {
          if (idle > nanos) {
            LOG.warn("A peer takes nothing of what it asked for; {} is closed", channel);
            ChannelFuture unused = channel.close();
          }
        });
  }

  /** For how long no stream has moved on a channel. */
  private static long idle(Channel channel, long now, Map<Channel, Long> youngest) {
    Long lastSent = channel.attr(LAST_SENT).get();
    long sinceSent = lastSent == null ? Long.MAX_VALUE : now - lastSent;
    return Math.min(sinceSent, youngest.getOrDefault(channel, Long.MAX_VALUE));
  }

  /** Streams that hold memory now. */
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
}
