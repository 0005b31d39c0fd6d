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
 * Receives the requests of peers. Each connection's event loop calls it and also sends the answer.
 * Requests that ask for compression take too long for an event loop: threads named {@code
 * weft-pack-<n>} answer them. Thread-safe.
 */
final class BlockRequests extends RpcHandler implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(BlockRequests.class);

  private final BlockAnswers answers;
  private final ServedStreams streams;
  private final PeerServices services = new PeerServices();
  private final ExecutorService compressors;
  private final Set<Channel> channels = ConcurrentHashMap.newKeySet();

  /**
   * Creates the handler.
   *
   * @param compressors number of threads that compress
   */
  BlockRequests(BlockAnswers answers, ServedStreams streams, int compressors) {
    this.answers = answers;
    this.streams = streams;
    this.compressors = Executors.newFixedThreadPool(compressors, new NumberedThreads("weft-pack-"));
  }

  /** The services for requests that are not for blocks. */
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
      answerCompressed(channel, request, callback);
    }
  }

  private void answerCompressed(Channel channel, OpenBlocks request, RpcResponseCallback callback) {
    try {
      compressors.execute(
          () -> {
            try {
              callback.onSuccess(answers.answer(channel, request));
            } catch (RuntimeException e) {
              callback.onFailure(e);
            }
            if (!channel.isActive()) {
              // The connection ended before this stream was registered, so close the stream now.
              streams.connectionTerminated(channel);
            }
          });
    } catch (RejectedExecutionException e) {
      callback.onSuccess(answers.refuse(e));
    }
  }

  /** Receives a message that has no answer. */
  @Override
  public void receive(TransportClient client, ByteBuffer message) {
    try {
      streams.decline(CloseStream.decode(message).stream(), client.getChannel());
    } catch (WireException e) {
      LOG.warn("Message from {} ignored: {}", client.getSocketAddress(), e.getMessage());
    }
  }

  /** Stops the threads that compress. */
  @Override
  public void close() {
    compressors.shutdownNow();
  }

  /** Closes all connections and waits, at most the timeout for all, until their streams end. */
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
