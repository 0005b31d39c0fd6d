package io.weft.tcp;

import static io.weft.metrics.ExchangeCounter.BLOCKS_SERVED;
import static io.weft.metrics.ExchangeCounter.BYTES_SERVED;
import static io.weft.metrics.ExchangeCounter.REQUESTS_REFUSED;
import static io.weft.metrics.ExchangeCounter.REQUESTS_SERVED;

import io.netty.channel.Channel;
import io.netty.channel.ChannelFuture;
import io.weft.catalog.BlockCatalog;
import io.weft.catalog.OwnedBlocks;
import io.weft.catalog.OwnedOutput;
import io.weft.metrics.ExchangeCounters;
import io.weft.wire.BlockRange;
import io.weft.wire.BlocksOpened;
import io.weft.wire.BlocksRefused;
import io.weft.wire.CloseStream;
import io.weft.wire.OpenBlocks;
import io.weft.wire.StreamId;
import io.weft.wire.WireException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import org.apache.spark.network.client.RpcResponseCallback;
import org.apache.spark.network.client.TransportClient;
import org.apache.spark.network.server.RpcHandler;
import org.apache.spark.network.server.StreamManager;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Answers peers. Called on event loops, by one of them for each connection. Thread-safe. */
final class BlockRequests extends RpcHandler {
  private static final Logger LOG = LoggerFactory.getLogger(BlockRequests.class);

  private final String executorId;
  private final String incarnation;
  private final BlockCatalog catalog;
  private final ServedStreams streams;
  private final ExchangeCounters counters;
  private final Set<Channel> channels = ConcurrentHashMap.newKeySet();

  BlockRequests(
      String executorId,
      String incarnation,
      BlockCatalog catalog,
      ServedStreams streams,
      ExchangeCounters counters) {
    this.executorId = executorId;
    this.incarnation = incarnation;
    this.catalog = catalog;
    this.streams = streams;
    this.counters = counters;
  }

  @Override
  public StreamManager getStreamManager() {
    return streams;
  }

  @Override
  public void channelActive(TransportClient client) {
    channels.add(client.getChannel());
  }

  @Override
  public void channelInactive(TransportClient client) {
    channels.remove(client.getChannel());
  }

  @Override
  public void receive(TransportClient client, ByteBuffer message, RpcResponseCallback callback) {
    callback.onSuccess(answer(client.getChannel(), message));
  }

  /** Messages without an answer. */
  @Override
  public void receive(TransportClient client, ByteBuffer message) {
    try {
      streams.decline(CloseStream.decode(message).stream(), client.getChannel());
    } catch (WireException e) {
      LOG.warn("Message from {} ignored: {}", client.getSocketAddress(), e.getMessage());
    }
  }

  private ByteBuffer answer(Channel channel, ByteBuffer message) {
    try {
      OpenBlocks request = OpenBlocks.decode(message);
      if (!request.incarnation().equals(incarnation)) {
        return refuse(
            -1,
            "this is executor "
                + executorId
                + ", incarnation "
                + incarnation
                + "; the request is for incarnation "
                + request.incarnation()
                + ", which has ended");
      }
      return open(channel, request);
    } catch (WireException | IllegalStateException e) {
      return refuse(-1, "executor " + executorId + ": " + e.getMessage());
    }
  }

  private ByteBuffer open(Channel channel, OpenBlocks request) {
    Map<Integer, OwnedBlocks> holds = new HashMap<>();
    ServedStream stream = new ServedStream(channel, holds.values());
    boolean kept = false;
    try {
      AnswerBuilder builder = new AnswerBuilder(request, stream);
      List<BlockRange> ranges = request.ranges();
      for (int range = 0; range < ranges.size() && !builder.isFull(); range++) {
        BlockRange wanted = ranges.get(range);
        try {
          OwnedOutput output =
              holds.computeIfAbsent(wanted.key().shuffleId(), catalog::hold).owned(wanted.key());
          requirePartitions(wanted, output);
          builder.addRange(output, wanted.startPartition(), wanted.endPartition());
        } catch (IOException e) {
          return refuse(range, e.getMessage());
        }
      }
      kept = stream.bytes() > 0;
      return accept(builder, stream);
    } finally {
      if (!kept) {
        stream.close();
      }
    }
  }

  private static void requirePartitions(BlockRange wanted, OwnedOutput output) throws IOException {
    if (wanted.endPartition() > output.index().partitions()) {
      throw new IOException(
          wanted.key()
              + " has "
              + output.index().partitions()
              + " partitions, asked for were ["
              + wanted.startPartition()
              + ", "
              + wanted.endPartition()
              + ")");
    }
  }

  private ByteBuffer accept(AnswerBuilder builder, ServedStream stream) {
    StreamId id = stream.bytes() > 0 ? streams.register(stream) : StreamId.NONE;
    BlocksOpened answer = builder.answer(id);
    counters.increment(REQUESTS_SERVED);
    counters.add(BLOCKS_SERVED, answer.blocks());
    counters.add(BYTES_SERVED, answer.totalBytes());
    return answer.encode();
  }

  private ByteBuffer refuse(int range, String reason) {
    counters.increment(REQUESTS_REFUSED);
    return new BlocksRefused(range, reason).encode();
  }

  /** Streams that hold memory now. */
  int openStreams() {
    return streams.open();
  }

  /** Ends all connections and waits until they have let go of their streams, or for so long. */
  void closeConnections(long timeoutMillis) {
    List<ChannelFuture> closing = channels.stream().map(Channel::close).toList();
    long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(timeoutMillis);
    for (ChannelFuture channel : closing) {
      long left = TimeUnit.NANOSECONDS.toMillis(deadline - System.nanoTime());
      if (!channel.awaitUninterruptibly(Math.max(0, left))) {
        LOG.warn("The connection {} did not close in {} ms", channel.channel(), timeoutMillis);
        continue;
      }
      streams.connectionTerminated(channel.channel());
    }
  }
}
