package io.weft.support;

import io.weft.shuffle.peer.PeerAddress;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.spark.SparkConf;
import org.apache.spark.network.TransportContext;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.network.buffer.NioManagedBuffer;
import org.apache.spark.network.client.RpcResponseCallback;
import org.apache.spark.network.client.TransportClient;
import org.apache.spark.network.netty.SparkTransportConf;
import org.apache.spark.network.server.RpcHandler;
import org.apache.spark.network.server.StreamManager;
import org.apache.spark.network.server.TransportServer;
import scala.Option;

/** A peer on Spark's transport whose answers a test defines. */
public final class FakePeer implements AutoCloseable {
  /** The behavior for a request. */
  @FunctionalInterface
  public interface Behaviour {
    void answer(TransportClient client, ByteBuffer request, RpcResponseCallback callback)
        throws IOException;
  }

  private final TransportContext context;
  private final TransportServer server;
  private final Map<String, byte[]> streams = new ConcurrentHashMap<>();
  private final AtomicInteger requests = new AtomicInteger();

  public FakePeer(Behaviour behaviour) {
    context =
        new TransportContext(
            SparkTransportConf.fromSparkConf(
                new SparkConf(false), "shuffle", 1, Option.empty(), Option.empty()),
            new Handler(behaviour));
    server = context.createServer("localhost", 0, List.of());
  }

  /** An address of this peer that is not on this host. */
  public PeerAddress address(String executorId) {
    return new PeerAddress(
        executorId, "beefbeef", "localhost", server.getPort(), "/nowhere", "", "elsewhere", "test");
  }

  /** Provides a stream under a name. */
  public void stream(String name, byte[] contents) {
    streams.put(name, contents);
  }

  /** The number of requests. */
  public int requests() {
    return requests.get();
  }

  @Override
  public void close() {
    server.close();
    context.close();
  }

  private final class Handler extends RpcHandler {
    private final Behaviour behaviour;

    Handler(Behaviour behaviour) {
      this.behaviour = behaviour;
    }

    @Override
    public void receive(TransportClient client, ByteBuffer message, RpcResponseCallback callback) {
      requests.incrementAndGet();
      try {
        behaviour.answer(client, message, callback);
      } catch (IOException e) {
        callback.onFailure(e);
      }
    }

    @Override
    public StreamManager getStreamManager() {
      return new StreamManager() {
        @Override
        public ManagedBuffer getChunk(long streamId, int chunkIndex) {
          throw new UnsupportedOperationException();
        }

        @Override
        public ManagedBuffer openStream(String streamId) {
          byte[] contents = streams.get(streamId);
          return contents == null ? null : new NioManagedBuffer(ByteBuffer.wrap(contents));
        }
      };
    }
  }
}
