package io.weft.spark.rapids;

import com.nvidia.spark.rapids.GpuDeviceManager;
import com.nvidia.spark.rapids.RapidsConf;
import com.nvidia.spark.rapids.jni.RmmSpark;
import com.nvidia.spark.rapids.shuffle.DirectByteBufferPool;
import com.nvidia.spark.rapids.shuffle.RapidsShuffleClient;
import com.nvidia.spark.rapids.shuffle.RefCountedDirectByteBuffer;
import io.weft.collectives.CommunicatorOptions;
import io.weft.collectives.CommunicatorOptions.LogPrefix;
import io.weft.spark.rapids.BouncePool.BounceMemory;
import io.weft.spark.rapids.ControlMessage.ControlHello;
import io.weft.spark.rapids.ControlService.ControlChannel;
import io.weft.spark.rapids.ControlService.ControlListener;
import io.weft.spark.rapids.LaneSet.LaneParts;
import io.weft.spark.rapids.Receives.CopyThread;
import io.weft.spark.rapids.Throttle.InflightBudget;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.spark.SparkConf;
import org.apache.spark.network.netty.SparkTransportConf;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Function0;
import scala.Option;
import scala.runtime.BoxedUnit;

/**
 * The parts of a transport, from its first client or server on. Owns all of them.
 *
 * @param lanes of all connections
 * @param sends bounce buffers of the server
 * @param receives bounce buffers of clients
 */
record TransportParts(
    TransportSettings settings,
    EventThread events,
    DeviceThreads threads,
    CopyThread copies,
    LaneSet lanes,
    BouncePool sends,
    BouncePool receives,
    ControlService service,
    ServerSide server,
    ClientSide client,
    Throttle throttle)
    implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(TransportParts.class);
  private static final Duration EXPIRY_PERIOD = Duration.ofMillis(200);
  private static final Duration POOL_TIMEOUT = Duration.ofSeconds(5);
  private static final Duration LANE_TIMEOUT = Duration.ofSeconds(10);

  /**
   * Allocates the memory and starts the threads. Opens no connection and no port yet.
   *
   * @param roomMade run when the budget or the receive buffers may have room again
   */
  static TransportParts open(
      TransportSettings settings, HostMessages messages, InflightBudget budget, Runnable roomMade) {
    BouncePool sends = pool(settings, "send", () -> {});
    BouncePool receives;
    try {
      receives = pool(settings, "receive", roomMade);
    } catch (RuntimeException | Error e) {
      sends.close();
      throw e;
    }
    RapidsConf rapids = settings.rapids();
    DeviceThreads threads =
        new DeviceThreads(
            rapids.shuffleMaxClientThreads(), rapids.shuffleClientThreadKeepAliveTime());
    CopyThread copies = new CopyThread(threads.copy());
    EventThread events = new EventThread("weft-rapids-events");
    EventDispatcher dispatch = new EventDispatcher(events);
    ControlService service =
        new ControlService(
            SparkTransportConf.fromSparkConf(
                settings.conf(), "shuffle", 0, Option.empty(), Option.empty()),
            settings.version(),
            settings.executor(),
            dispatch);
    LaneSet lanes = new LaneSet(laneParts(settings));
    Receives tickets =
        new Receives(events, threads.client(), copies, budget, receives::hold, roomMade);
    ServerSide server =
        new ServerSide(settings, lanes, events, service, sends::hold, messages::copy);
    ClientSide client =
        new ClientSide(
            settings, lanes, events, service, tickets, messages::copy, each -> end(threads, each));
    dispatch.connect(server, client);
    Throttle throttle = new Throttle(tickets, budget, receives, DeviceThreads.throttle());
    TransportParts parts =
        new TransportParts(
            settings, events, threads, copies, lanes, sends, receives, service, server, client,
            throttle);
    throttle.start();
    events.every(EXPIRY_PERIOD, server::expire);
    events.every(EXPIRY_PERIOD, client::expire);
    return parts;
  }

  private static LaneParts laneParts(TransportSettings settings) {
    LaneParts parts = settings.lanes();
    CommunicatorOptions options =
        parts
            .options()
            .withTimeout(settings.deadline())
            .withPrefix(new LogPrefix(Long.toString(settings.executor()), "", -1, -1));
    return new LaneParts(parts.communicators(), parts.wires(), options);
  }

  private static BouncePool pool(TransportSettings settings, String name, Runnable freed) {
    return new BouncePool(
        name,
        settings.memory(),
        settings.rapids().shuffleUcxBounceBuffersSize(),
        settings.rapids().shuffleUcxDeviceBounceBuffersCount(),
        POOL_TIMEOUT,
        freed);
  }

  /** Closes a client on a client thread, because it notifies tasks, which take locks. */
  private static void end(DeviceThreads threads, RapidsShuffleClient client) {
    try {
      threads.client().execute(client::close);
    } catch (RejectedExecutionException e) {
      client.close();
    }
  }

  /** Ends every transaction with an error, then frees everything. */
  @Override
  public void close() {
    String reason = "the shuffle transport of executor " + settings.executor() + " was closed";
    throttle.close();
    boolean unused =
        events.execute(
            () -> {
              client.end(reason);
              server.end(reason);
            });
    service.close();
    awaitLanes();
    events.close();
    threads.close();
    sends.close();
    receives.close();
  }

  private void awaitLanes() {
    try {
      if (!lanes.awaitEnd(LANE_TIMEOUT)) {
        LOG.warn(
            "Communicators of executor {} do not end within {}", settings.executor(), LANE_TIMEOUT);
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  /**
   * The settings and resources of a transport.
   *
   * @param version of Weft
   * @param executor id of this executor, 0 or more
   * @param conf Spark's settings, for the connections
   * @param rapids settings of spark-rapids, for sizes and counts
   * @param lanes creates the communicators
   * @param memory allocates the bounce buffers
   * @param deadline of a request without progress, of a connection, and of one block
   * @param idle a communicator is given up after this time without use
   */
  record TransportSettings(
      String version,
      long executor,
      SparkConf conf,
      RapidsConf rapids,
      LaneParts lanes,
      BounceMemory memory,
      Duration deadline,
      Duration idle) {}

  /** Forwards the events of connections to the event thread, in order. */
  static final class EventDispatcher implements ControlListener {
    private final EventThread events;

    /** The connections that others opened. Used by the event thread. */
    private final Map<ControlChannel, ServerLink> served = new HashMap<>();

    private volatile ServerSide server;
    private volatile ClientSide client;

    EventDispatcher(EventThread events) {
      this.events = events;
    }

    /** Sets both sides. Called before the first connection. */
    void connect(ServerSide serverSide, ClientSide clientSide) {
      server = serverSide;
      client = clientSide;
    }

    @Override
    public void connected(ControlChannel channel, ControlHello hello) {
      boolean open =
          events.execute(() -> served.put(channel, server.open(hello.executor(), channel)));
      if (!open) {
        throw new IllegalArgumentException("its shuffle transport was closed");
      }
    }

    @Override
    public void received(ControlChannel channel, ControlMessage message) {
      boolean unused = events.execute(() -> handle(link(channel), message));
    }

    private static void handle(RapidsLink link, ControlMessage message) {
      if (link == null) {
        return;
      }
      try {
        link.handle(message);
      } catch (IllegalArgumentException e) {
        link.end("a message of executor %d is invalid: %s".formatted(link.peer(), e.getMessage()));
      }
    }

    private RapidsLink link(ControlChannel channel) {
      ServerLink link = served.get(channel);
      return link != null ? link : client.of(channel);
    }

    @Override
    public void ended(ControlChannel channel) {
      boolean unused =
          events.execute(
              () -> {
                RapidsLink link = link(channel);
                served.remove(channel);
                if (link != null) {
                  link.end(
                      "the connection of executors %d and %d ended"
                          .formatted(link.own(), link.peer()));
                }
              });
    }
  }

  /**
   * Host memory for messages; small messages come from a pool. Thread-safe. The holder of a message
   * closes it.
   */
  static final class HostMessages {
    private static final Logger LOG = LoggerFactory.getLogger(HostMessages.class);

    private final long pooledBytes;
    private final DirectByteBufferPool pool;
    private final AtomicBoolean warned = new AtomicBoolean();

    /** Creates the pool for messages of up to this size. */
    HostMessages(long pooledBytes) {
      this.pooledBytes = pooledBytes;
      this.pool = new DirectByteBufferPool(pooledBytes);
    }

    /**
     * Memory of at least this size.
     *
     * @throws IllegalArgumentException if the size is larger than a host buffer can be
     */
    RefCountedDirectByteBuffer take(long bytes) {
      if (bytes <= pooledBytes) {
        return pool.getBuffer(bytes);
      }
      if (bytes > Integer.MAX_VALUE) {
        throw new IllegalArgumentException("a message of " + bytes + " bytes");
      }
      if (warned.compareAndSet(false, true)) {
        LOG.info(
            "A message of {} bytes does not fit the pool of messages;"
                + " spark.rapids.shuffle.maxMetadataSize is {}",
            bytes,
            pooledBytes);
      }
      return new RefCountedDirectByteBuffer(ByteBuffer.allocateDirect((int) bytes), Option.empty());
    }

    /** Copies bytes into a message, positioned at its start. */
    RefCountedDirectByteBuffer copy(byte[] payload) {
      RefCountedDirectByteBuffer memory = take(payload.length);
      memory.getBuffer().put(payload).flip();
      return memory;
    }
  }

  /**
   * The threads of spark-rapids' client and server. They are bound to the executor's GPU and known
   * to its memory manager, as spark-rapids requires of its shuffle threads.
   */
  static final class DeviceThreads implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(DeviceThreads.class);
    private static final long CLOSE_MILLIS = 2000;

    private final ExecutorService client;
    private final ExecutorService copy;
    private final ExecutorService server;
    private final ExecutorService sends;

    /**
     * Creates pools whose threads start on demand.
     *
     * @param clients the limit of client threads
     * @param keepAliveSeconds how long idle threads stay
     */
    DeviceThreads(int clients, int keepAliveSeconds) {
      client = pool("client", Math.max(1, clients), keepAliveSeconds);
      copy = pool("copy", 1, keepAliveSeconds);
      server = pool("server", 1, keepAliveSeconds);
      sends = pool("sends", 1, keepAliveSeconds);
    }

    private static ExecutorService pool(String name, int threads, int keepAliveSeconds) {
      AtomicInteger number = new AtomicInteger();
      ThreadFactory factory =
          task -> {
            String suffix = threads == 1 ? "" : "-" + number.incrementAndGet();
            Thread thread = new Thread(task, "weft-rapids-" + name + suffix);
            thread.setDaemon(true);
            return thread;
          };
      ThreadPoolExecutor pool =
          new ThreadPoolExecutor(
              threads,
              threads,
              Math.max(1, keepAliveSeconds),
              TimeUnit.SECONDS,
              new LinkedBlockingQueue<>(),
              bound(factory));
      pool.allowCoreThreadTimeOut(true);
      return pool;
    }

    private static ThreadFactory bound(ThreadFactory factory) {
      Function0<BoxedUnit> forget =
          () -> {
            RmmSpark.removeAllCurrentThreadAssociation();
            return BoxedUnit.UNIT;
          };
      return GpuDeviceManager.wrapThreadFactory(factory, null, forget);
    }

    /**
     * Threads for the throttle, which allocates no GPU memory but creates objects with a stream.
     */
    static ThreadFactory throttle() {
      return bound(
          task -> {
            Thread thread = new Thread(task, "weft-rapids-throttle");
            thread.setDaemon(true);
            return thread;
          });
    }

    ExecutorService client() {
      return client;
    }

    ExecutorService copy() {
      return copy;
    }

    ExecutorService server() {
      return server;
    }

    /** The pool for the server's loop, which ends when the server is closed. */
    ExecutorService sends() {
      return sends;
    }

    /** Refuses new tasks and waits up to 2 s per pool for submitted ones. */
    @Override
    public void close() {
      List<ExecutorService> all = List.of(client, copy, server, sends);
      all.forEach(ExecutorService::shutdown);
      for (ExecutorService each : all) {
        try {
          if (!each.awaitTermination(CLOSE_MILLIS, TimeUnit.MILLISECONDS)) {
            LOG.warn("Threads of spark-rapids' shuffle do not end: {}", each);
          }
        } catch (InterruptedException e) {
          Thread.currentThread().interrupt();
          return;
        }
      }
    }
  }
}
