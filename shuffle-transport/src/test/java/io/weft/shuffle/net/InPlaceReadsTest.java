package io.weft.shuffle.net;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.netty.channel.epoll.Epoll;
import io.netty.channel.unix.IntegerUnixChannelOption;
import io.weft.memory.Memory;
import io.weft.shuffle.net.BlockClient.SparkConnection;
import io.weft.shuffle.net.InPlaceReads.LowWaterMark;
import io.weft.shuffle.net.OpenBlocks.StreamId;
import io.weft.shuffle.net.PeerConnection.PendingCall;
import io.weft.shuffle.net.PeerConnection.StreamReceiver;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.spark.SecurityManager;
import org.apache.spark.SparkConf;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.network.buffer.NioManagedBuffer;
import org.apache.spark.network.client.RpcResponseCallback;
import org.apache.spark.network.client.TransportClient;
import org.apache.spark.network.client.TransportClientFactory;
import org.apache.spark.network.server.RpcHandler;
import org.apache.spark.network.server.StreamManager;
import org.apache.spark.network.server.TransportServer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import scala.Option;

/** Streams that are read straight into the memory of their receiver if possible. */
class InPlaceReadsTest {
  private static final int BYTES = (8 << 20) + 13;
  private static final int STREAMS = 3;
  private static final IntegerUnixChannelOption SO_RCVLOWAT =
      new IntegerUnixChannelOption("test.SO_RCVLOWAT", 1, 18);
  private static final byte[] CONTENTS = new byte[BYTES];

  static {
    new Random(5).nextBytes(CONTENTS);
  }

  /** Connection settings of users. */
  private enum Setting {
    PLAIN,
    NIO,
    AUTHENTICATED,
    ENCRYPTED,
    SASL_ENCRYPTED;

    SparkConf conf() {
      SparkConf conf = new SparkConf(false);
      return switch (this) {
        // The default of Spark 4.0 is NIO.
        case PLAIN -> Epoll.isAvailable() ? conf.set("spark.shuffle.io.mode", "EPOLL") : conf;
        case NIO -> conf.set("spark.shuffle.io.mode", "NIO");
        case AUTHENTICATED -> secret(conf);
        case ENCRYPTED -> secret(conf).set("spark.network.crypto.enabled", "true");
        case SASL_ENCRYPTED -> secret(conf).set("spark.authenticate.enableSaslEncryption", "true");
      };
    }

    private static SparkConf secret(SparkConf conf) {
      return conf.set("spark.authenticate", "true").set("spark.authenticate.secret", "swordfish");
    }

    boolean isPlainOnTheWire() {
      return this != ENCRYPTED && this != SASL_ENCRYPTED;
    }
  }

  private static PendingCall turn() {
    return new PendingCall(System.nanoTime(), TimeUnit.MINUTES.toNanos(1));
  }

  /** A server whose streams all have the same bytes. */
  private static final class Server extends RpcHandler {
    @Override
    public void receive(TransportClient client, ByteBuffer message, RpcResponseCallback callback) {
      callback.onFailure(new IOException("streams only"));
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
          return new NioManagedBuffer(ByteBuffer.wrap(CONTENTS));
        }
      };
    }
  }

  /**
   * Lends its memory for every read, even beyond the end of its stream. Overwrites it there when it
   * is returned.
   */
  private static final class Receiver implements StreamReceiver {
    private static final int ROOM = 300_000;

    private final ByteBuffer memory = ByteBuffer.allocateDirect(BYTES + ROOM);
    private final CompletableFuture<Void> end = new CompletableFuture<>();
    private final AtomicInteger loans = new AtomicInteger();
    private final PeerConnection connection;
    private final int breaksOffAt;
    private volatile Runnable onData = () -> {};
    private int filled;
    private int lent;
    private int inPlace;

    Receiver(PeerConnection connection, int breaksOffAt) {
      this.connection = connection;
      this.breaksOffAt = breaksOffAt;
    }

    @Override
    public long streamBytes() {
      return BYTES;
    }

    @Override
    public ByteBuffer lendBuffer() {
      loans.incrementAndGet();
      lent++;
      return memory.slice(filled, ROOM);
    }

    @Override
    public void bufferReturned() {
      loans.decrementAndGet();
      for (int at = filled; at < Math.min(filled + ROOM, memory.capacity()); at++) {
        memory.put(at, (byte) -1);
      }
    }

    @Override
    public void onData(String stream, ByteBuffer data) {
      onData.run();
      int bytes = data.remaining();
      boolean there =
          data.isDirect()
              && Memory.addressOf(data) + data.position() == Memory.addressOf(memory) + filled;
      if (there) {
        inPlace += bytes;
        data.position(data.limit());
      } else {
        memory.put(filled, data, data.position(), bytes);
      }
      filled += bytes;
      if (filled >= breaksOffAt) {
        connection.abort();
      }
    }

    @Override
    public void onComplete(String stream) {
      end.complete(null);
    }

    @Override
    public void onFailure(String stream, Throwable cause) {
      end.completeExceptionally(cause);
    }

    void awaitReturn() {
      await("memory that was lent")
          .atMost(Duration.ofSeconds(30))
          .untilAsserted(() -> assertThat(loans).hasValue(0));
    }
  }

  private TransportClient client;

  private interface Use {
    void with(PeerConnection connection) throws Exception;
  }

  private void connected(Setting setting, Use use) throws Exception {
    SparkConf conf = setting.conf();
    SecurityManager security = new SecurityManager(conf, Option.empty(), null);
    try (SparkTransport transport =
            new SparkTransport(
                SparkTransport.settings(conf, security, 1, Duration.ofMinutes(1)),
                security,
                "weft",
                new Server());
        TransportServer server = transport.createServer("localhost", 0);
        TransportClientFactory factory = transport.createClientFactory()) {
      client = factory.createClient("localhost", server.getPort());
      use.with(new SparkConnection(client));
    }
  }

  @ParameterizedTest
  @EnumSource
  void streamsAreReadIntoTheMemoryOfTheirReceiver(Setting setting) throws Exception {
    connected(
        setting,
        connection -> {
          Receiver[] receivers = new Receiver[STREAMS];
          for (int i = 0; i < STREAMS; i++) {
            receivers[i] = new Receiver(connection, Integer.MAX_VALUE);
            connection.receive(new StreamId(1, i), turn(), receivers[i]);
          }
          for (Receiver receiver : receivers) {
            receiver.end.get(30, TimeUnit.SECONDS);
            assertThat(receiver.filled).isEqualTo(BYTES);
            receiver.awaitReturn();
            assertThat(receiver.memory.slice(0, BYTES)).isEqualTo(ByteBuffer.wrap(CONTENTS));
            if (setting.isPlainOnTheWire()) {
              assertThat(receiver.inPlace)
                  .as("all bytes except those that came with an earlier message")
                  .isGreaterThan(BYTES - (512 << 10));
            } else {
              assertThat(receiver.inPlace).isZero();
            }
          }
        });
  }

  @ParameterizedTest
  @EnumSource
  void memoryIsReturnedWhenTheConnectionBreaks(Setting setting) throws Exception {
    connected(
        setting,
        connection -> {
          Receiver receiver = new Receiver(connection, BYTES / 2);
          connection.receive(new StreamId(1, 0), turn(), receiver);
          assertThat(receiver.end)
              .failsWithin(30, TimeUnit.SECONDS)
              .withThrowableOfType(ExecutionException.class);
          assertThat(receiver.lent > 0).isEqualTo(setting.isPlainOnTheWire());
          receiver.awaitReturn();
        });
  }

  /** Reads the kernel's setting, because otherwise only the cost shows it. */
  @Test
  void whileAStreamComesFastTheKernelWakesForManyBytes() throws Exception {
    assumeTrue(Epoll.isAvailable(), "Netty has no epoll here");
    connected(
        Setting.PLAIN,
        connection -> {
          List<Integer> marks = new CopyOnWriteArrayList<>();
          Receiver last = null;
          for (int i = 0; i < STREAMS; i++) {
            last = new Receiver(connection, Integer.MAX_VALUE);
            last.onData = () -> marks.add(client.getChannel().config().getOption(SO_RCVLOWAT));
            connection.receive(new StreamId(1, i), turn(), last);
          }
          last.end.get(30, TimeUnit.SECONDS);
          assertThat(marks).contains(LowWaterMark.BYTES).endsWith(1);
        });
  }
}
