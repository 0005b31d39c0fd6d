package io.weft.tcp;

import io.netty.channel.Channel;
import io.netty.channel.ChannelFuture;
import io.weft.wire.CloseStream;
import io.weft.wire.Compression;
import io.weft.wire.OpenBlocks;
import io.weft.wire.ServiceMessage;
import io.weft.wire.WireException;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import org.apache.spark.network.client.RpcResponseCallback;
import org.apache.spark.network.client.TransportClient;
import org.apache.spark.network.server.RpcHandler;
import org.apache.spark.network.server.StreamManager;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Takes the requests of peers. Called on event loops, by one of them for each connection, which
 * also answers; but where chunks are packed, that takes so long that threads named {@code
 * weft-pack-<n>} do it. Thread-safe.
 */
final class BlockRequests extends RpcHandler implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(BlockRequests.class);

  private final BlockAnswers answers;
  private final ServedStreams streams;
  private final PeerServices services = new PeerServices();
  private final ExecutorService packers;
  private final Set<Channel> channels = ConcurrentHashMap.newKeySet();

  /**
   * Takes requests.
   *
   * @param packers how many threads may pack at a time
   */
  BlockRequests(BlockAnswers answers, ServedStreams streams, int packers) {
    this.answers = answers;
    this.streams = streams;
    this.packers = Executors.newFixedThreadPool(packers, new NumberedThreads("weft-pack-"));
  }

  /** What peers ask for that is no block. */
  PeerServices services() {
    return services;
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
    if (ServiceMessage.is(message)) {
      services.answer(message, callback);
      return;
    }
    Channel channel = client.getChannel();
    OpenBlocks request;
    try {
      request = OpenBlocks.decode(message);
    } catch (WireException e) {
      callback.onSuccess(answers.refuse(e));
      return;
    }
    if (request.compression() == Compression.NONE) {
      callback.onSuccess(answers.answer(channel, request));
    } else {
      packLater(channel, request, callback);
    }
  }

  private void packLater(Channel channel, OpenBlocks request, RpcResponseCallback callback) {
    try {
      packers.execute(
          () -> {
            try {
              callback.onSuccess(answers.answer(channel, request));
            } catch (RuntimeException e) {
              callback.onFailure(e);
            }
            if (!channel.isActive()) {
              // It ended meanwhile, and what had been opened on it was let go before.
              streams.connectionTerminated(channel);
            }
          });
    } catch (RejectedExecutionException e) {
      callback.onSuccess(answers.refuse(e));
    }
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

  /** Ends the threads that pack. */
  @Override
  public void close() {
    packers.shutdownNow();
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
