package io.weft.spark.rapids;

import com.nvidia.spark.rapids.RapidsConf;
import com.nvidia.spark.rapids.shuffle.RapidsShuffleClient;
import io.weft.collectives.CommunicatorOptions;
import io.weft.collectives.LogPrefix;
import io.weft.spark.rapids.control.ControlService;
import io.weft.spark.rapids.data.LaneParts;
import io.weft.spark.rapids.data.LaneSet;
import java.time.Duration;
import java.util.concurrent.RejectedExecutionException;
import org.apache.spark.network.netty.SparkTransportConf;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Option;

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
    Dispatch dispatch = new Dispatch(events);
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
}
