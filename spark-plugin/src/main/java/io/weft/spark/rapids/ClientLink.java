package io.weft.spark.rapids;

import com.nvidia.spark.rapids.shuffle.ClientConnection;
import com.nvidia.spark.rapids.shuffle.MetadataTransportBuffer;
import com.nvidia.spark.rapids.shuffle.RapidsShuffleClient;
import com.nvidia.spark.rapids.shuffle.Transaction;
import com.nvidia.spark.rapids.shuffle.TransactionCallback;
import io.weft.collectives.DataType;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.UniqueId;
import io.weft.device.Deadline;
import io.weft.spark.rapids.ControlMessage.Announcement;
import io.weft.spark.rapids.ControlMessage.Grant;
import io.weft.spark.rapids.ControlMessage.Refusal;
import io.weft.spark.rapids.ControlMessage.Request;
import io.weft.spark.rapids.ControlMessage.Response;
import io.weft.spark.rapids.ControlMessage.Retire;
import io.weft.spark.rapids.ControlService.ControlChannel;
import io.weft.spark.rapids.DataLane.BlockMove;
import io.weft.spark.rapids.RapidsTransaction.MessageNames;
import io.weft.spark.rapids.Receives.ReceiveTicket;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import java.util.function.Supplier;
import scala.Enumeration;

/** The client's end of a connection: sends requests to a server and receives its blocks. */
final class ClientLink extends RapidsLink implements ClientConnection {
  private final ClientSide side;
  private final Map<Long, PendingRequest> waiting = new HashMap<>();
  private final List<GrantedBlock> granted = new ArrayList<>();
  private RapidsShuffleClient client;

  /** The epoch of the data lane, and below the number of granted moves that have not ended. */
  private long epoch;

  private UniqueId communicatorId;
  private int moves;
  private long usedNanos;

  /**
   * A request without an answer.
   *
   * @param ticket of the requested tables; null for other requests
   */
  private record PendingRequest(
      RapidsTransaction transaction, ReceiveTicket ticket, long startNanos) {
    Deadline deadline(long nanos) {
      boolean isNewer = ticket != null && ticket.progressNanos() - startNanos > 0;
      return Deadline.since(isNewer ? ticket.progressNanos() : startNanos, nanos);
    }
  }

  /** A block whose move is not queued yet. */
  private record GrantedBlock(Announcement block, long address, Consumer<Throwable> ended) {
    TypedBuffer buffer() {
      return TypedBuffer.at(address, DataType.INT8, block.bytes());
    }
  }

  /** The client's end of a connection that this executor has opened. */
  ClientLink(ClientSide side, long peer, ControlChannel channel) {
    super(side.settings().executor(), peer, channel, side.lanes(), true);
    this.side = side;
  }

  /** The client of this connection, created on first use. Thread-safe. */
  synchronized RapidsShuffleClient client(Supplier<RapidsShuffleClient> maker) {
    if (client == null) {
      client = maker.get();
    }
    return client;
  }

  private synchronized RapidsShuffleClient client() {
    return client;
  }

  @Override
  public long getPeerExecutorId() {
    return peer();
  }

  @Override
  public void registerReceiveHandler(Enumeration.Value type) {
    MessageNames.requireBuffer(type);
  }

  @Override
  public Transaction request(
      Enumeration.Value type, ByteBuffer request, TransactionCallback callback) {
    int number = MessageNames.requireRequest(type);
    byte[] payload = ServerLink.bytes(request);
    long header = side.nextHeader();
    ReceiveTicket ticket = side.receives().issuing();
    String what =
        "%s of executor %d to executor %d".formatted(MessageNames.request(number), own(), peer());
    RapidsTransaction transaction = RapidsTransaction.begin(what, peer(), header, callback);
    boolean taken =
        side.events()
            .execute(
                () -> {
                  if (ended() != null) {
                    fail(new PendingRequest(transaction, ticket, 0), ended());
                    return;
                  }
                  waiting.put(header, new PendingRequest(transaction, ticket, System.nanoTime()));
                  send(new Request(number, header, payload));
                });
    if (!taken) {
      transaction.fail("the transport was closed");
    }
    return transaction;
  }

  private void fail(PendingRequest request, String reason) {
    request.transaction().fail(reason);
    if (request.ticket() != null) {
      side.receives().fail(request.ticket(), reason);
    }
  }

  @Override
  boolean take(ControlMessage message) {
    if (message instanceof Response response) {
      answered(response);
    } else if (message instanceof Refusal refusal && refusal.ofRequest()) {
      PendingRequest request = waiting.remove(refusal.number());
      if (request != null) {
        fail(request, refusal.reason());
      }
    } else if (message instanceof Announcement block) {
      side.receives().announced(this, block);
    } else {
      return false;
    }
    return true;
  }

  private void answered(Response response) {
    PendingRequest request = waiting.remove(response.header());
    if (request != null) {
      MetadataTransportBuffer answer =
          new MetadataTransportBuffer(side.message(response.payload()));
      request.transaction().succeed(answer, 0, response.payload().length);
    }
  }

  /**
   * Grants a block. Blocks that are granted by events which wait now move together with it.
   *
   * @param ended run when the lane no longer touches the memory
   */
  void grant(Announcement block, long address, Consumer<Throwable> ended) {
    if (block.bytes() == 0) {
      send(new Grant(List.of(block.send()), 0, ""));
      ended.accept(null);
      return;
    }
    granted.add(new GrantedBlock(block, address, ended));
    if (granted.size() == 1 && !side.events().execute(this::moveGranted)) {
      moveGranted(); // The lane refuses it.
    }
  }

  /** Both ends queue the granted blocks as one move on the data lane. */
  private void moveGranted() {
    List<GrantedBlock> blocks = List.copyOf(granted);
    granted.clear();
    if (communicatorId == null || lane().isOver(epoch)) {
      epoch++;
      communicatorId = UniqueId.create();
    }
    moves++;
    // Sent first, so that no bootstrap message of the epoch comes before it.
    List<Long> sends = blocks.stream().map(each -> each.block().send()).toList();
    send(new Grant(sends, epoch, communicatorId.encode()));
    lane()
        .submit(
            new BlockMove(
                epoch,
                communicatorId,
                blocks.stream().map(GrantedBlock::buffer).toList(),
                false,
                failure -> {
                  try {
                    blocks.forEach(each -> each.ended().accept(failure));
                  } finally {
                    boolean unused = side.events().execute(this::passed);
                  }
                }));
  }

  private void passed() {
    moves--;
    usedNanos = System.nanoTime();
  }

  @Override
  void expire() {
    long nanos = side.settings().deadline().toNanos();
    for (Map.Entry<Long, PendingRequest> entry : new ArrayList<>(waiting.entrySet())) {
      Deadline deadline = entry.getValue().deadline(nanos);
      if (deadline.expired()) {
        waiting.remove(entry.getKey());
        fail(entry.getValue(), "no answer came within " + deadline);
      }
    }
    retireIfIdle();
  }

  private void retireIfIdle() {
    boolean isIdle =
        moves == 0
            && communicatorId != null
            && Deadline.since(usedNanos, side.settings().idle().toNanos()).expired();
    if (isIdle) {
      communicatorId = null;
      lane().retire(epoch);
      send(new Retire(epoch));
    }
  }

  @Override
  void endAll(String reason) {
    for (PendingRequest request : new ArrayList<>(waiting.values())) {
      fail(request, reason);
    }
    waiting.clear();
    side.receives().failAll(this, reason);
    side.ended(this, client());
  }
}
