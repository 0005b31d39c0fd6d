package io.weft.shuffle.net;

import io.netty.channel.ChannelFuture;
import io.weft.shuffle.net.OpenBlocks.BlocksRefused;
import io.weft.shuffle.net.OpenBlocks.StreamId;
import io.weft.shuffle.net.OpenBlocks.StreamId.DiscardStream;
import io.weft.shuffle.net.PeerConnection.PeerConnections;
import io.weft.shuffle.net.PeerConnection.PendingCall;
import io.weft.shuffle.net.PeerConnection.PendingCalls;
import io.weft.shuffle.net.PeerConnection.StreamReceiver;
import io.weft.shuffle.net.SparkTransport.DaemonThreads;
import io.weft.shuffle.peer.PeerAddress;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.spark.network.client.RpcResponseCallback;
import org.apache.spark.network.client.StreamCallback;
import org.apache.spark.network.client.TransportClient;
import org.apache.spark.network.client.TransportClientFactory;

/**
 * Connections to the block servers of peers. Connecting and authenticating block, so they run on at
 * most {@link #MAX_CONNECTING} threads named {@code weft-connect-<n>}, which end when they are
 * idle. A reader that waits for a connection can therefore time out.
 *
 * <p>An attempt that fails late marks its host as unreachable. Attempts to such hosts run on {@link
 * #MAX_TO_UNREACHABLE} threads of their own until one succeeds, so that a failed rack does not
 * delay the connections to living executors. Thread-safe.
 */
public final class BlockClient implements PeerConnections, AutoCloseable {
  /** Maximum connections that are made at the same time to hosts not known to be unreachable. */
  static final int MAX_CONNECTING = 64;

  /** Maximum connections that are made at the same time to unreachable hosts. */
  static final int MAX_TO_UNREACHABLE = 8;

  /** Beyond this number unreachable hosts are forgotten, and found out again. */
  private static final int MAX_UNREACHABLE_HOSTS = 1000;

  private static final int IDLE_SECONDS = 10;

  private final TransportClientFactory factory;
  private final ExecutorService connectors = connectors(MAX_CONNECTING, "weft-connect-");
  private final ExecutorService toUnreachable =
      connectors(MAX_TO_UNREACHABLE, "weft-connect-again-");
  private final Set<String> unreachableHosts = ConcurrentHashMap.newKeySet();

  /**
   * A living host refuses at once. One that is off fails after the connect timeout, or after about
   * three seconds if its network reports it as unreachable.
   */
  private static final long LATE_NANOS = TimeUnit.SECONDS.toNanos(1);

  private final int connectionsPerPeer;
  private final AtomicInteger nextSlot = new AtomicInteger();
  private final ConcurrentHashMap<Slot, CompletableFuture<PeerConnection>> connections =
      new ConcurrentHashMap<>();
  private volatile boolean closed;

  /** One of the connections that Spark's settings allow between two executors. */
  private record Slot(PeerAddress peer, int number) {}

  /** Creates a client of a transport. */
  public BlockClient(SparkTransport transport) {
    this.factory = transport.createClientFactory();
    this.connectionsPerPeer = transport.conf().numConnectionsPerPeer();
  }

  private static ExecutorService connectors(int most, String name) {
    ThreadPoolExecutor threads =
        new ThreadPoolExecutor(
            most,
            most,
            IDLE_SECONDS,
            TimeUnit.SECONDS,
            new LinkedBlockingQueue<>(),
            new DaemonThreads(name));
    threads.allowCoreThreadTimeOut(true);
    return threads;
  }

  @Override
  public CompletableFuture<PeerConnection> connect(PeerAddress peer) {
    Slot slot = new Slot(peer, Math.floorMod(nextSlot.getAndIncrement(), connectionsPerPeer));
    return connect(slot);
  }

  private CompletableFuture<PeerConnection> connect(Slot slot) {
    CompletableFuture<PeerConnection> known = connections.get(slot);
    if (known != null && isUsable(known)) {
      return known;
    }
    CompletableFuture<PeerConnection> fresh = new CompletableFuture<>();
    boolean mine =
        known == null
            ? connections.putIfAbsent(slot, fresh) == null
            : connections.replace(slot, known, fresh);
    if (!mine) {
      return connect(slot);
    }
    // Connections of ended executors are never asked for again.
    connections.values().removeIf(each -> !isUsable(each));
    startConnecting(slot.peer(), fresh);
    return fresh;
  }

  private static boolean isUsable(CompletableFuture<PeerConnection> connection) {
    return !connection.isDone()
        || (!connection.isCompletedExceptionally() && connection.join().isActive());
  }

  private void startConnecting(PeerAddress peer, CompletableFuture<PeerConnection> connection) {
    execute(
        connectors,
        connection,
        () -> {
          // Only now, because other attempts may have found out meanwhile.
          if (unreachableHosts.contains(peer.host())) {
            execute(toUnreachable, connection, () -> connectNow(peer, connection));
          } else {
            connectNow(peer, connection);
          }
        });
  }

  private static void execute(
      ExecutorService threads, CompletableFuture<PeerConnection> connection, Runnable attempt) {
    try {
      threads.execute(attempt);
    } catch (RejectedExecutionException e) {
      connection.completeExceptionally(new IOException("the exchange is closed", e));
    }
  }

  private void markUnreachable(String host) {
    if (unreachableHosts.size() >= MAX_UNREACHABLE_HOSTS) {
      unreachableHosts.clear();
    }
    unreachableHosts.add(host);
  }

  private void connectNow(PeerAddress peer, CompletableFuture<PeerConnection> connection) {
    long start = System.nanoTime();
    try {
      PeerConnection connected =
          new SparkConnection(factory.createClient(peer.host(), peer.port(), false));
      unreachableHosts.remove(peer.host());
      if (!connection.complete(connected) || closed) {
        connected.abort();
      }
    } catch (InterruptedException e) {
      connection.completeExceptionally(new IOException("the exchange is closed", e));
    } catch (IOException | RuntimeException e) {
      if (System.nanoTime() - start >= LATE_NANOS) {
        markUnreachable(peer.host());
      }
      connection.completeExceptionally(
          new IOException("connecting to " + peer + " failed: " + e.getMessage(), e));
    }
  }

  /** Closes all connections. Outstanding requests fail. */
  @Override
  public void close() {
    closed = true;
    connectors.shutdownNow();
    toUnreachable.shutdownNow();
    // Attempts that have not begun never end by themselves.
    IOException cause = new IOException("the exchange is closed");
    connections.values().forEach(each -> each.completeExceptionally(cause));
    factory.close();
  }

  /** A connection over Spark's transport. Thread-safe. */
  static final class SparkConnection implements PeerConnection {
    private final TransportClient client;
    private final Optional<InPlaceReads> inPlace;
    private final PendingCalls calls = new PendingCalls();

    SparkConnection(TransportClient client) {
      this.client = client;
      this.inPlace = InPlaceReads.of(client.getChannel());
    }

    @Override
    public void open(OpenBlocks request, PendingCall call, RpcResponseCallback callback) {
      calls.begin(call);
      client.sendRpc(
          request.encode(),
          new RpcResponseCallback() {
            @Override
            public void onSuccess(ByteBuffer answer) {
              // A busy peer may refuse again and again without progress.
              if (!BlocksRefused.matches(answer)) {
                calls.progressed(call);
              }
              calls.end(call);
              callback.onSuccess(answer);
            }

            @Override
            public void onFailure(Throwable cause) {
              calls.end(call);
              callback.onFailure(cause);
            }
          });
    }

    @Override
    public void call(ServiceMessage request, RpcResponseCallback callback) {
      client.sendRpc(request.encode(), callback);
    }

    @Override
    public void receive(StreamId stream, PendingCall call, StreamReceiver receiver) {
      calls.begin(call);
      StreamCallback marking = new MarkingStream(receiver, call);
      client.stream(
          stream.toString(),
          inPlace
              .<StreamCallback>map(reads -> new InPlaceStream(reads, receiver, marking))
              .orElse(marking));
    }

    /** Records progress when bytes of a stream arrive. */
    private final class MarkingStream implements StreamCallback {
      private final StreamReceiver receiver;
      private final PendingCall call;

      MarkingStream(StreamReceiver receiver, PendingCall call) {
        this.receiver = receiver;
        this.call = call;
      }

      @Override
      public void onData(String stream, ByteBuffer data) throws IOException {
        calls.progressed(call);
        receiver.onData(stream, data);
      }

      @Override
      public void onComplete(String stream) throws IOException {
        calls.end(call);
        receiver.onComplete(stream);
      }

      @Override
      public void onFailure(String stream, Throwable cause) throws IOException {
        calls.end(call);
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
    public long lastProgress() {
      return calls.lastProgress();
    }

    @Override
    public void decline(StreamId stream) {
      client.send(new DiscardStream(stream).encode());
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
}
