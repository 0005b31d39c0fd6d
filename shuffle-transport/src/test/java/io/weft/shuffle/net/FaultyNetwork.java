package io.weft.shuffle.net;

import io.netty.channel.ChannelFuture;
import io.netty.channel.embedded.EmbeddedChannel;
import io.weft.shuffle.net.BlockServer.BlockRequests;
import io.weft.shuffle.net.OpenBlocks.StreamId;
import io.weft.shuffle.net.OpenBlocks.StreamId.DiscardStream;
import io.weft.shuffle.net.PeerConnection.PeerConnections;
import io.weft.shuffle.net.PeerConnection.PendingCall;
import io.weft.shuffle.net.PeerConnection.PendingCalls;
import io.weft.shuffle.net.PeerConnection.StreamReceiver;
import io.weft.shuffle.net.SparkTransport.DaemonThreads;
import io.weft.shuffle.peer.PeerAddress;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.network.client.RpcResponseCallback;
import org.apache.spark.network.client.StreamCallback;
import org.apache.spark.network.client.TransportClient;
import org.apache.spark.network.client.TransportResponseHandler;

/**
 * Simulates the network between one reader and one server in this process. A seed decides the fault
 * of each frame. All frames pass on one thread. Each connection has a queue per direction, which
 * keeps the order of frames unless a fault changes it.
 */
public final class FaultyNetwork implements PeerConnections, AutoCloseable {
  /** The faults of a frame. */
  private enum Fault {
    DELAY,
    DROP,
    DUPLICATE,
    REORDER,
    CORRUPT,
    TRUNCATE,
    CLOSE
  }

  private final Server server;
  private final SplittableRandom random;
  private final double faultRate;
  private final int mostConnections;
  private final ScheduledThreadPoolExecutor thread =
      new ScheduledThreadPoolExecutor(1, new DaemonThreads("weft-test-network-"));
  private final List<Connection> connections = new ArrayList<>();
  private Connection current;
  private int faults;

  /** The server that answers. */
  public interface Server {
    BlockRequests requests();
  }

  /**
   * Creates a network whose faults depend on a seed.
   *
   * @param faultRate of frames, 0 to 1
   */
  FaultyNetwork(Server server, long seed, double faultRate) {
    this.server = server;
    this.random = new SplittableRandom(seed);
    this.faultRate = faultRate;
    this.mostConnections = 1 + random.nextInt(4);
  }

  /** The number of frames with a fault. */
  synchronized int faults() {
    return faults;
  }

  @Override
  public synchronized CompletableFuture<PeerConnection> connect(PeerAddress peer) {
    if (current == null || !current.isActive()) {
      if (connections.size() == mostConnections) {
        return CompletableFuture.failedFuture(new IOException("connecting to " + peer + " failed"));
      }
      current = new Connection();
      connections.add(current);
    }
    return CompletableFuture.completedFuture(current);
  }

  /** Closes all connections and drops frames in flight. */
  @Override
  public void close() throws InterruptedException {
    List<Connection> all;
    synchronized (this) {
      all = List.copyOf(connections);
    }
    thread.execute(() -> all.forEach(Connection::end));
    thread.shutdown();
    thread.setExecuteExistingDelayedTasksAfterShutdownPolicy(false);
    if (!thread.awaitTermination(30, TimeUnit.SECONDS)) {
      throw new IllegalStateException("the network still runs");
    }
  }

  private synchronized Fault fault() {
    if (random.nextDouble() >= faultRate) {
      return null;
    }
    faults++;
    return Fault.values()[random.nextInt(Fault.values().length)];
  }

  private synchronized int number(int bound) {
    return random.nextInt(bound);
  }

  private void run(Runnable work) {
    try {
      thread.execute(work);
    } catch (RejectedExecutionException e) {
      // The round is over.
    }
  }

  /** The bytes of a frame and their receiver at the other end. */
  private record Frame(byte[] bytes, Taker taker) {
    void arrive() {
      taker.take(ByteBuffer.wrap(bytes));
    }
  }

  private interface Taker {
    void take(ByteBuffer bytes);
  }

  /** The queue of one direction. For the network's thread. */
  private final class Direction {
    private final Connection connection;
    private final ArrayDeque<Frame> queue = new ArrayDeque<>();
    private boolean paused;

    Direction(Connection connection) {
      this.connection = connection;
    }

    void send(byte[] bytes, Taker taker) {
      run(
          () -> {
            queue.add(new Frame(bytes, taker));
            pump();
          });
    }

    private void pump() {
      while (!paused && !queue.isEmpty() && connection.isActive()) {
        Frame frame = queue.remove();
        Fault fault = fault();
        if (fault == null) {
          frame.arrive();
        } else {
          applyFault(fault, frame);
        }
      }
    }

    private void applyFault(Fault fault, Frame frame) {
      switch (fault) {
        case DELAY -> pause(() -> frame.arrive());
        case DROP -> {}
        case DUPLICATE -> {
          frame.arrive();
          frame.arrive();
        }
        case REORDER ->
            pause(
                () -> {
                  Frame next = queue.poll();
                  if (next != null) {
                    next.arrive();
                  }
                  frame.arrive();
                });
        case CORRUPT -> {
          byte[] bytes = frame.bytes().clone();
          if (bytes.length > 0) {
            bytes[number(bytes.length)] ^= (byte) (1 << number(8));
          }
          new Frame(bytes, frame.taker()).arrive();
        }
        case TRUNCATE -> {
          int left = number(frame.bytes().length + 1);
          new Frame(Arrays.copyOf(frame.bytes(), left), frame.taker()).arrive();
        }
        case CLOSE -> connection.end();
      }
    }

    private void pause(Runnable then) {
      paused = true;
      ScheduledFuture<?> unused =
          thread.schedule(
              () -> {
                paused = false;
                if (connection.isActive()) {
                  then.run();
                }
                pump();
              },
              1 + number(8),
              TimeUnit.MILLISECONDS);
    }
  }

  /** Both ends of one connection. */
  private final class Connection implements PeerConnection {
    private final EmbeddedChannel channel = new EmbeddedChannel();
    private final TransportClient serverSide =
        new TransportClient(channel, new TransportResponseHandler(channel));
    private final Direction there = new Direction(this);
    private final Direction back = new Direction(this);
    private final Map<Integer, RpcResponseCallback> asked = new HashMap<>();
    private final Map<String, StreamReceiver> streams = new HashMap<>();
    private int requests;
    private volatile boolean active = true;
    private final PendingCalls turns = new PendingCalls();
    private final Map<String, PendingCall> streamTurns = new HashMap<>();

    @Override
    public boolean isActive() {
      return active;
    }

    @Override
    public long lastProgress() {
      return turns.lastProgress();
    }

    @Override
    public void open(OpenBlocks request, PendingCall turn, RpcResponseCallback callback) {
      turns.begin(turn);
      byte[] bytes = bytes(request.encode());
      run(
          () -> {
            if (!active) {
              callback.onFailure(new IOException("the connection is closed"));
              return;
            }
            int id = requests++;
            asked.put(id, callback);
            there.send(bytes, arrived -> serve(id, arrived));
          });
    }

    private void serve(int id, ByteBuffer request) {
      server
          .requests()
          .receive(
              serverSide,
              request,
              new RpcResponseCallback() {
                @Override
                public void onSuccess(ByteBuffer answer) {
                  back.send(bytes(answer), arrived -> answered(id, arrived));
                }

                @Override
                public void onFailure(Throwable cause) {
                  back.send(new byte[0], none -> failed(id, cause));
                }
              });
    }

    private void answered(int id, ByteBuffer answer) {
      RpcResponseCallback callback = asked.remove(id);
      if (callback != null) {
        callback.onSuccess(answer);
      }
    }

    private void failed(int id, Throwable cause) {
      RpcResponseCallback callback = asked.remove(id);
      if (callback != null) {
        callback.onFailure(cause);
      }
    }

    @Override
    public void receive(StreamId stream, PendingCall turn, StreamReceiver callback) {
      turns.begin(turn);
      String name = stream.toString();
      run(
          () -> {
            if (!active) {
              deliver(() -> callback.onFailure(name, new IOException("the connection is closed")));
              return;
            }
            streams.put(name, callback);
            streamTurns.put(name, turn);
            there.send(name.getBytes(StandardCharsets.US_ASCII), this::stream);
          });
    }

    private void stream(ByteBuffer request) {
      String name = StandardCharsets.ISO_8859_1.decode(request).toString();
      ManagedBuffer contents = server.requests().getStreamManager().openStream(name);
      if (contents == null) {
        String reason = "Stream '" + name + "' was not found.";
        // The transport matches answers by the order of requests, not by the name.
        back.send(new byte[0], none -> failStreams(new IllegalStateException(reason)));
        return;
      }
      try (InputStream in = contents.createInputStream()) {
        byte[] piece = in.readNBytes(1 + number(4000));
        while (piece.length > 0) {
          back.send(piece, arrived -> data(name, arrived));
          piece = in.readNBytes(1 + number(4000));
        }
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
      back.send(new byte[0], none -> complete(name));
      server.requests().getStreamManager().streamSent(name);
    }

    private void data(String name, ByteBuffer data) {
      StreamReceiver callback = streams.get(name);
      if (callback != null) {
        turns.progressed(streamTurns.get(name));
        deliver(() -> hand(callback, name, data));
      }
    }

    /** Delivers bytes, at random in the memory of their receiver. */
    private void hand(StreamReceiver receiver, String name, ByteBuffer data) throws IOException {
      ByteBuffer lent = number(2) == 0 ? null : receiver.lendBuffer();
      if (lent == null) {
        receiver.onData(name, data);
        return;
      }
      try {
        int bytes = Math.min(lent.remaining(), data.remaining());
        lent.put(0, data, data.position(), bytes);
        receiver.onData(name, lent.slice(0, bytes));
        data.position(data.position() + bytes);
      } finally {
        receiver.bufferReturned();
      }
      if (data.hasRemaining()) {
        receiver.onData(name, data);
      }
    }

    private void complete(String name) {
      StreamCallback callback = streams.remove(name);
      if (callback != null) {
        deliver(() -> callback.onComplete(name));
      }
    }

    private interface Delivery {
      void run() throws IOException;
    }

    private void deliver(Delivery delivery) {
      try {
        delivery.run();
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    }

    private void failStreams(Exception cause) {
      Map<String, StreamCallback> all = new HashMap<>(streams);
      streams.clear();
      all.forEach((name, callback) -> deliver(() -> callback.onFailure(name, cause)));
    }

    @Override
    public void decline(StreamId stream) {
      byte[] bytes = bytes(new DiscardStream(stream).encode());
      there.send(bytes, arrived -> server.requests().receive(serverSide, arrived));
    }

    @Override
    public void abort() {
      active = false;
      run(this::end);
    }

    private boolean ended;

    private void end() {
      if (ended) {
        return;
      }
      ended = true;
      active = false;
      IOException closed = new IOException("the connection is closed");
      Map<Integer, RpcResponseCallback> all = new HashMap<>(asked);
      asked.clear();
      all.values().forEach(callback -> callback.onFailure(closed));
      failStreams(closed);
      ChannelFuture unused = channel.close();
      server.requests().getStreamManager().connectionTerminated(channel);
    }
  }

  private static byte[] bytes(ByteBuffer message) {
    byte[] bytes = new byte[message.remaining()];
    message.duplicate().get(bytes);
    return bytes;
  }
}
