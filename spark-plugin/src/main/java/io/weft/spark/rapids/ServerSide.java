package io.weft.spark.rapids;

import ai.rapids.cudf.MemoryBuffer;
import com.nvidia.spark.rapids.shuffle.RefCountedDirectByteBuffer;
import com.nvidia.spark.rapids.shuffle.ServerConnection;
import com.nvidia.spark.rapids.shuffle.Transaction;
import com.nvidia.spark.rapids.shuffle.TransactionCallback;
import io.weft.spark.rapids.ControlService.ControlChannel;
import io.weft.spark.rapids.RapidsTransaction.MessageNames;
import io.weft.spark.rapids.TransportParts.TransportSettings;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Function;
import java.util.function.LongFunction;
import scala.Enumeration;

/**
 * The connections of this executor as a server. The event thread owns the state of connections;
 * spark-rapids' server calls from any thread.
 */
final class ServerSide implements ServerConnection {
  private final TransportSettings settings;
  private final LaneSet lanes;
  private final EventThread events;
  private final ControlService service;
  private final LongFunction<Runnable> holds;
  private final Function<byte[], RefCountedDirectByteBuffer> messages;
  private final Map<Integer, TransactionCallback> handlers = new ConcurrentHashMap<>();
  private final Map<Long, ServerLink> links = new HashMap<>();

  /**
   * Creates a server side without a port.
   *
   * @param holds holds the bounce buffer at an address, so that it is not reused
   * @param messages copies a message into host memory that spark-rapids can close
   */
  ServerSide(
      TransportSettings settings,
      LaneSet lanes,
      EventThread events,
      ControlService service,
      LongFunction<Runnable> holds,
      Function<byte[], RefCountedDirectByteBuffer> messages) {
    this.settings = settings;
    this.lanes = lanes;
    this.events = events;
    this.service = service;
    this.holds = holds;
    this.messages = messages;
  }

  TransportSettings settings() {
    return settings;
  }

  LaneSet lanes() {
    return lanes;
  }

  RefCountedDirectByteBuffer message(byte[] payload) {
    return messages.apply(payload);
  }

  /** The handler of a request type; null if there is none. */
  TransactionCallback handler(int type) {
    return handlers.get(type);
  }

  @Override
  public int startManagementPort(String host) {
    return service.listen(host);
  }

  @Override
  public void registerRequestHandler(Enumeration.Value type, TransactionCallback callback) {
    handlers.put(MessageNames.requireRequest(type), callback);
  }

  @Override
  public Transaction send(
      long peer,
      Enumeration.Value type,
      long header,
      ByteBuffer response,
      TransactionCallback callback) {
    String what =
        "%s of executor %d to executor %d"
            .formatted(
                MessageNames.request(MessageNames.requireRequest(type)), peer, settings.executor());
    byte[] payload = ServerLink.bytes(response);
    RapidsTransaction transaction =
        RapidsTransaction.begin("the answer to " + what, peer, header, callback);
    run(
        transaction,
        () -> {
          ServerLink link = links.get(peer);
          if (link == null) {
            transaction.fail(noLink(peer));
          } else {
            link.answer(transaction, header, payload);
          }
        });
    return transaction;
  }

  @Override
  public Transaction send(
      long peer,
      Enumeration.Value type,
      long header,
      MemoryBuffer buffer,
      TransactionCallback callback) {
    MessageNames.requireBuffer(type);
    long address = buffer.getAddress();
    long bytes = buffer.getLength();
    RapidsTransaction transaction =
        RapidsTransaction.begin(
            "sending %d bytes from executor %d to executor %d"
                .formatted(bytes, settings.executor(), peer),
            peer,
            header,
            callback);
    Runnable release = holds.apply(address);
    boolean taken =
        events.execute(
            () -> {
              ServerLink link = links.get(peer);
              if (link == null) {
                release.run();
                transaction.fail(noLink(peer));
              } else {
                link.send(transaction, header, address, bytes, release);
              }
            });
    if (!taken) {
      release.run();
      transaction.fail("the transport was closed");
    }
    return transaction;
  }

  private String noLink(long peer) {
    return "executor %d is not connected to executor %d".formatted(peer, settings.executor());
  }

  /** Runs a task on the event thread, or fails the transaction here if the thread has ended. */
  void run(RapidsTransaction transaction, Runnable task) {
    if (!events.execute(task)) {
      transaction.fail("the transport was closed");
    }
  }

  /** On the event thread: a client has connected or reconnected. */
  ServerLink open(long peer, ControlChannel channel) {
    ServerLink before = links.get(peer);
    if (before != null) {
      before.end("executor %d reconnected".formatted(peer));
    }
    ServerLink link = new ServerLink(this, peer, channel);
    links.put(peer, link);
    return link;
  }

  /** On the event thread: a connection has ended. */
  void ended(ServerLink link) {
    links.remove(link.peer(), link);
  }

  /** On the event thread: fails what has timed out. */
  void expire() {
    new ArrayList<>(links.values()).forEach(RapidsLink::expire);
  }

  /** On the event thread: ends all connections. */
  void end(String reason) {
    new ArrayList<>(links.values()).forEach(link -> link.end(reason));
  }
}
