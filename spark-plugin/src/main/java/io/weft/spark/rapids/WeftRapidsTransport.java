package io.weft.spark.rapids;

import com.nvidia.spark.rapids.GpuDeviceManager;
import com.nvidia.spark.rapids.RapidsConf;
import com.nvidia.spark.rapids.jni.RmmSpark;
import com.nvidia.spark.rapids.shuffle.BounceBuffer;
import com.nvidia.spark.rapids.shuffle.ClientConnection;
import com.nvidia.spark.rapids.shuffle.PendingTransferRequest;
import com.nvidia.spark.rapids.shuffle.RapidsShuffleClient;
import com.nvidia.spark.rapids.shuffle.RapidsShuffleFetchHandler;
import com.nvidia.spark.rapids.shuffle.RapidsShuffleRequestHandler;
import com.nvidia.spark.rapids.shuffle.RapidsShuffleServer;
import com.nvidia.spark.rapids.shuffle.RapidsShuffleTransport;
import com.nvidia.spark.rapids.shuffle.RefCountedDirectByteBuffer;
import com.nvidia.spark.rapids.shuffle.SendBounceBuffers;
import io.weft.collectives.CommunicatorOptions;
import io.weft.collectives.LogPrefix;
import io.weft.spark.rapids.control.ControlService;
import io.weft.spark.rapids.data.LaneParts;
import io.weft.spark.rapids.data.LaneSet;
import io.weft.spark.transfers.ExecutorTransfers;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadFactory;
import org.apache.spark.network.netty.SparkTransportConf;
import org.apache.spark.storage.BlockManagerId;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.BoxedUnit;

/**
 * The shuffle transport that spark-rapids makes by name, once in each executor ({@code
 * spark.rapids.shuffle.transport.class}). It owns its bounce buffers, connections and threads.
 *
 * <p>Thread-safe. Nothing of it takes memory of the GPU or opens a port before the first client or
 * server is made.
 */
public final class WeftRapidsTransport implements RapidsShuffleTransport {
  private static final Logger LOG = LoggerFactory.getLogger(WeftRapidsTransport.class);
  private static final Duration LOOK_FOR_EXPIRED = Duration.ofMillis(200);
  private static final Duration POOL_PATIENCE = Duration.ofSeconds(5);
  private static final Duration LANE_PATIENCE = Duration.ofSeconds(10);

  private final BlockManagerId id;
  private final TransportSettings settings;
  private final HostMessages messages;
  private final InflightBudget budget;
  private Running running;
  private boolean closed;

  /** What is there from the first client or server on. */
  private record Running(
      EventThread events,
      DeviceThreads threads,
      CopyThread copies,
      LaneSet lanes,
      BouncePool sends,
      BouncePool receives,
      ControlService service,
      ServerSide server,
      ClientSide client,
      Throttle throttle) {}

  /**
   * As spark-rapids makes it.
   *
   * @param id of this executor's block manager
   * @param conf settings of spark-rapids
   * @throws IllegalStateException when Weft's plugin is not there, or the executor has no GPU that
   *     Weft can use; the message says what to do
   */
  public WeftRapidsTransport(BlockManagerId id, RapidsConf conf) {
    this(id, ExecutorParts.settings(id, conf));
    // The plugin ends before spark-rapids' manager, and with it the GPU that data passes through.
    ExecutorTransfers.running().ifPresent(transfers -> transfers.beforeClose(this::close));
  }

  WeftRapidsTransport(BlockManagerId id, TransportSettings settings) {
    this.id = id;
    this.settings = settings;
    this.messages = new HostMessages(settings.rapids().shuffleMaxMetadataSize());
    this.budget = new InflightBudget(settings.rapids().shuffleTransportMaxReceiveInflightBytes());
    LOG.info("Weft moves the tables of spark-rapids' shuffles from and to executor {}", id);
  }

  private synchronized Running running() {
    if (closed) {
      throw new IllegalStateException("the shuffle transport of " + id + " was closed");
    }
    if (running == null) {
      running = open();
      running.throttle().start();
      Running opened = running;
      running.events().every(LOOK_FOR_EXPIRED, opened.server()::expire);
      running.events().every(LOOK_FOR_EXPIRED, opened.client()::expire);
    }
    return running;
  }

  private Running open() {
    RapidsConf rapids = settings.rapids();
    BouncePool sends = pool("send", () -> {});
    BouncePool receives;
    try {
      receives = pool("receive", this::roomMade);
    } catch (RuntimeException | Error e) {
      sends.close();
      throw e;
    }
    DeviceThreads threads =
        new DeviceThreads(
            rapids.shuffleMaxClientThreads(), rapids.shuffleClientThreadKeepAliveTime());
    CopyThread copies = new CopyThread(threads.copy());
    EventThread events = new EventThread("weft-rapids-events");
    Dispatch dispatch = new Dispatch(events);
    ControlService service =
        new ControlService(
            SparkTransportConf.fromSparkConf(
                settings.conf(), "shuffle", 0, Option.empty(), Option.empty()),
            settings.version(),
            settings.executor(),
            dispatch);
    LaneSet lanes = new LaneSet(laneParts());
    Receives tickets =
        new Receives(events, threads.client(), copies, budget, receives::hold, this::roomMade);
    ServerSide server =
        new ServerSide(settings, lanes, events, service, sends::hold, messages::copy);
    ClientSide client =
        new ClientSide(
            settings, lanes, events, service, tickets, messages::copy, each -> end(threads, each));
    dispatch.connect(server, client);
    Throttle throttle = new Throttle(tickets, budget, receives, throttleThread());
    return new Running(
        events, threads, copies, lanes, sends, receives, service, server, client, throttle);
  }

  private LaneParts laneParts() {
    LaneParts parts = settings.lanes();
    CommunicatorOptions options =
        parts
            .options()
            .withTimeout(settings.deadline())
            .withPrefix(new LogPrefix(Long.toString(settings.executor()), "", -1, -1));
    return new LaneParts(parts.communicators(), parts.wires(), options);
  }

  private BouncePool pool(String name, Runnable freed) {
    return new BouncePool(
        name,
        settings.memory(),
        settings.rapids().shuffleUcxBounceBuffersSize(),
        settings.rapids().shuffleUcxDeviceBounceBuffersCount(),
        POOL_PATIENCE,
        freed);
  }

  /** The throttle allocates nothing, but makes what holds a stream of the GPU. */
  private static ThreadFactory throttleThread() {
    ThreadFactory factory =
        task -> {
          Thread thread = new Thread(task, "weft-rapids-throttle");
          thread.setDaemon(true);
          return thread;
        };
    return GpuDeviceManager.wrapThreadFactory(
        factory,
        null,
        () -> {
          RmmSpark.removeAllCurrentThreadAssociation();
          return BoxedUnit.UNIT;
        });
  }

  /** On a thread of its own kind: a client tells its tasks, which take their locks. */
  private static void end(DeviceThreads threads, RapidsShuffleClient client) {
    try {
      threads.client().execute(client::close);
    } catch (RejectedExecutionException e) {
      client.close();
    }
  }

  private synchronized Throttle throttle() {
    return running == null ? null : running.throttle();
  }

  private void roomMade() {
    Throttle throttle = throttle();
    if (throttle != null) {
      throttle.changed();
    }
  }

  @Override
  public RapidsShuffleClient makeClient(BlockManagerId peer) {
    Running now = running();
    ClientLink link = link(now, peer);
    return link.client(
        () ->
            new RapidsShuffleClient(
                link,
                this,
                now.threads().client(),
                now.copies(),
                RapidsShuffleClient.$lessinit$greater$default$5()));
  }

  @Override
  public ClientConnection connect(BlockManagerId peer) {
    return link(running(), peer);
  }

  private ClientLink link(Running now, BlockManagerId peer) {
    PeerPort port = PeerPort.of(peer);
    if (port.executor() == settings.executor()) {
      throw new IllegalArgumentException("executor " + port.executor() + " fetches from itself");
    }
    try {
      return now.client().connect(port.executor(), peer.host(), port.port());
    } catch (IOException e) {
      throw new UncheckedIOException(e.getMessage(), e);
    }
  }

  @Override
  public RapidsShuffleServer makeServer(RapidsShuffleRequestHandler handler) {
    Running now = running();
    return new RapidsShuffleServer(
        this,
        now.server(),
        id,
        handler,
        now.threads().server(),
        now.threads().sends(),
        settings.rapids());
  }

  @Override
  public RefCountedDirectByteBuffer getDirectByteBuffer(long size) {
    return messages.take(size);
  }

  @Override
  public void queuePending(Seq<PendingTransferRequest> requests) {
    running().throttle().add(CollectionConverters.asJava(requests));
  }

  @Override
  public void cancelPending(RapidsShuffleFetchHandler handler) {
    Throttle throttle = throttle();
    if (throttle != null) {
      throttle.cancel(handler);
    }
  }

  @Override
  public void doneBytesInFlight(long bytes) {
    running().client().receives().tableArrived(bytes);
  }

  @Override
  public Seq<BounceBuffer> tryGetReceiveBounceBuffers(long remaining, int most) {
    return CollectionConverters.asScala(running().receives().tryTake(remaining, most)).toList();
  }

  /** Of the device only: what was spilled to the host is copied there before it is sent. */
  @Override
  public Seq<SendBounceBuffers> tryGetSendBounceBuffers(long remaining, int most) {
    List<SendBounceBuffers> buffers =
        running().sends().tryTake(remaining, most).stream()
            .map(buffer -> new SendBounceBuffers(buffer, Option.empty()))
            .toList();
    return CollectionConverters.asScala(buffers).toList();
  }

  /** Bytes of tables that were asked for and have not arrived. */
  long inflightBytes() {
    return budget.bytes();
  }

  /** Ends every transaction with an error, then frees everything. */
  @Override
  public void close() {
    Running last;
    synchronized (this) {
      last = running;
      running = null;
      closed = true;
    }
    if (last == null) {
      return;
    }
    String reason = "the shuffle transport of executor " + settings.executor() + " was closed";
    last.throttle().close();
    boolean unused =
        last.events()
            .execute(
                () -> {
                  last.client().end(reason);
                  last.server().end(reason);
                });
    last.service().close();
    awaitLanes(last.lanes());
    last.events().close();
    last.threads().close();
    last.sends().close();
    last.receives().close();
  }

  private void awaitLanes(LaneSet lanes) {
    try {
      if (!lanes.awaitEnd(LANE_PATIENCE)) {
        LOG.warn("Communicators of executor {} do not end within {}", id, LANE_PATIENCE);
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
