package io.weft.spark.rapids;

import com.nvidia.spark.rapids.RapidsConf;
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
import io.weft.spark.config.WeftSettings;
import io.weft.spark.config.WeftVersion;
import io.weft.spark.rapids.BouncePool.BounceMemory;
import io.weft.spark.rapids.LaneSet.LaneParts;
import io.weft.spark.rapids.Throttle.InflightBudget;
import io.weft.spark.rapids.TransportParts.HostMessages;
import io.weft.spark.rapids.TransportParts.TransportSettings;
import io.weft.spark.transfers.ExecutorTransfers;
import io.weft.transfers.DeviceTransfers.GpuResources;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.List;
import java.util.Optional;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;
import org.apache.spark.storage.BlockManagerId;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The shuffle transport that spark-rapids creates by name, once in each executor ({@code
 * spark.rapids.shuffle.transport.class}). It owns its bounce buffers, connections and threads.
 *
 * <p>Thread-safe. Takes no GPU memory and opens no port before the first client or server is
 * created.
 */
public final class WeftRapidsTransport implements RapidsShuffleTransport {
  private static final Logger LOG = LoggerFactory.getLogger(WeftRapidsTransport.class);

  private final BlockManagerId id;
  private final TransportSettings settings;
  private final HostMessages messages;
  private final InflightBudget budget;
  private TransportParts running;
  private RapidsShuffleServer server;
  private boolean closed;

  /**
   * The constructor that spark-rapids calls.
   *
   * @param id of this executor's block manager
   * @param conf settings of spark-rapids
   * @throws IllegalStateException if Weft's plugin does not run, or the executor has no GPU that
   *     Weft can use; the message says what to do
   */
  public WeftRapidsTransport(BlockManagerId id, RapidsConf conf) {
    this(id, ExecutorParts.settings(id, conf));
    // The plugin ends before spark-rapids' manager, and with it the GPU resources in use here.
    ExecutorTransfers.running().ifPresent(transfers -> transfers.beforeClose(this::close));
  }

  WeftRapidsTransport(BlockManagerId id, TransportSettings settings) {
    this.id = id;
    this.settings = settings;
    this.messages = new HostMessages(settings.rapids().shuffleMaxMetadataSize());
    this.budget = new InflightBudget(settings.rapids().shuffleTransportMaxReceiveInflightBytes());
    LOG.info("Weft moves the tables of spark-rapids' shuffles from and to executor {}", id);
  }

  private synchronized TransportParts running() {
    if (closed) {
      throw new IllegalStateException("the shuffle transport of " + id + " was closed");
    }
    if (running == null) {
      running = TransportParts.open(settings, messages, budget, this::roomMade);
    }
    return running;
  }

  /** Empty before the first use and after the end. */
  private synchronized Optional<TransportParts> present() {
    return Optional.ofNullable(running);
  }

  private void roomMade() {
    present().ifPresent(parts -> parts.throttle().changed());
  }

  @Override
  public RapidsShuffleClient makeClient(BlockManagerId peer) {
    TransportParts now = running();
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

  private ClientLink link(TransportParts now, BlockManagerId peer) {
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
    TransportParts now = running();
    RapidsShuffleServer made =
        new RapidsShuffleServer(
            this,
            now.server(),
            id,
            handler,
            now.threads().server(),
            now.threads().sends(),
            settings.rapids());
    synchronized (this) {
      server = made;
    }
    return made;
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
    present().ifPresent(parts -> parts.throttle().cancel(handler));
  }

  @Override
  public void doneBytesInFlight(long bytes) {
    present().ifPresent(parts -> parts.client().receives().tableArrived(bytes));
  }

  @Override
  public Seq<BounceBuffer> tryGetReceiveBounceBuffers(long remaining, int most) {
    return CollectionConverters.asScala(
            present().map(parts -> parts.receives().tryTake(remaining, most)).orElse(List.of()))
        .toList();
  }

  /** Device buffers only: spilled tables are copied to the device before they are sent. */
  @Override
  public Seq<SendBounceBuffers> tryGetSendBounceBuffers(long remaining, int most) {
    List<SendBounceBuffers> buffers =
        present().map(parts -> parts.sends().tryTake(remaining, most)).orElse(List.of()).stream()
            .map(buffer -> new SendBounceBuffers(buffer, Option.empty()))
            .toList();
    return CollectionConverters.asScala(buffers).toList();
  }

  /** Bytes of requested tables that have not arrived. */
  long inflightBytes() {
    return budget.bytes();
  }

  /** Ends every transaction with an error, then frees everything. */
  @Override
  public void close() {
    TransportParts last;
    RapidsShuffleServer lastServer;
    synchronized (this) {
      last = running;
      lastServer = server;
      running = null;
      server = null;
      closed = true;
    }
    if (lastServer != null) {
      // Otherwise its loop would go on. Closing it again does nothing.
      lastServer.close();
    }
    if (last != null) {
      last.close();
    }
  }

  /**
   * The management port of an executor. spark-rapids puts it into the topology of the block
   * manager's id, as "rapids=1234".
   */
  record PeerPort(long executor, int port) {
    private static final String PREFIX = "rapids=";

    /**
     * Reads the port from an id.
     *
     * @throws IllegalArgumentException if spark-rapids' server did not create the id
     */
    static PeerPort of(BlockManagerId id) {
      String topology = id.topologyInfo().getOrElse(() -> "");
      if (!topology.regionMatches(true, 0, PREFIX, 0, PREFIX.length())) {
        throw new IllegalArgumentException(
            id + " has no port of a shuffle transport: its executor's server has not started");
      }
      try {
        return new PeerPort(
            executor(id), Integer.parseInt(topology.substring(PREFIX.length()).trim()));
      } catch (NumberFormatException e) {
        throw new IllegalArgumentException(
            id + " has '" + topology + "' where the port of its shuffle transport should be", e);
      }
    }

    /**
     * The executor's number.
     *
     * @throws IllegalArgumentException if its id is not a number, like the driver's
     */
    static long executor(BlockManagerId id) {
      try {
        return Long.parseLong(id.executorId());
      } catch (NumberFormatException e) {
        throw new IllegalArgumentException(
            id + " is not of an executor with a number, as spark-rapids needs it", e);
      }
    }
  }

  /** Collects the settings and resources of a transport from the executor's plugin. Stateless. */
  static final class ExecutorParts {
    private ExecutorParts() {}

    /**
     * The settings of a real transport.
     *
     * @throws IllegalStateException if the plugin does not run, or has no GPU
     */
    static TransportSettings settings(BlockManagerId id, RapidsConf rapids) {
      ExecutorTransfers transfers =
          ExecutorTransfers.running()
              .orElseThrow(
                  () ->
                      new IllegalStateException(
                          RapidsRole.TRANSPORT
                              + " needs Weft's plugin, which does not run in executor "
                              + id.executorId()
                              + " (yet): set spark.plugins="
                              + RapidsRole.PLUGINS
                              + ", in this order"));
      GpuResources gpu =
          transfers
              .gpuResources()
              .orElseThrow(
                  () ->
                      new IllegalStateException(
                          "executor "
                              + id.executorId()
                              + " has no GPU that Weft can use; its log says why. Weft needs"
                              + " net.java.dev.jna:jna on the class path and"
                              + " spark.weft.transport=auto"));
      SparkConf conf = SparkEnv.get().conf();
      return new TransportSettings(
          WeftVersion.current(),
          PeerPort.executor(id),
          conf,
          rapids,
          new LaneParts(gpu.communicators(), gpu.wires(), CommunicatorOptions.DEFAULT),
          BounceMemory.ofCudf(rapids.rmmPool()),
          WeftSettings.TRANSFERS_DEADLINE.get(conf),
          WeftSettings.TRANSFERS_IDLE.get(conf));
    }
  }
}
