package io.weft.spark.rapids;

import com.nvidia.spark.rapids.shuffle.MetadataTransportBuffer;
import com.nvidia.spark.rapids.shuffle.RefCountedDirectByteBuffer;
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
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** The server's end of a connection: answers a client's requests and sends it blocks. */
final class ServerLink extends RapidsLink {
  private final ServerSide side;
  private final Map<Long, Outgoing> outgoing = new HashMap<>();
  private long sends;

  /** A block that was announced and not granted. */
  private record Outgoing(
      RapidsTransaction transaction,
      TypedBuffer buffer,
      long bytes,
      Runnable release,
      Deadline end) {}

  /** The server's end of a connection that a client has opened. */
  ServerLink(ServerSide side, long peer, ControlChannel channel) {
    super(side.settings().executor(), peer, channel, side.lanes(), false);
    this.side = side;
  }

  @Override
  boolean take(ControlMessage message) {
    if (message instanceof Request request) {
      take(request);
    } else if (message instanceof Grant grant) {
      take(grant);
    } else if (message instanceof Refusal refusal && !refusal.ofRequest()) {
      refused(refusal);
    } else if (message instanceof Retire retire) {
      lane().retire(retire.epoch());
    } else {
      return false;
    }
    return true;
  }

  private void take(Request request) {
    String what =
        "%s of executor %d to executor %d"
            .formatted(MessageNames.request(request.type()), peer(), own());
    TransactionCallback handler = side.handler(request.type());
    if (handler == null) {
      String reason = "executor %d has no handler for it (yet)".formatted(own());
      send(new Refusal(true, request.header(), reason));
      return;
    }
    RapidsTransaction transaction =
        RapidsTransaction.request(
            what,
            peer(),
            request.header(),
            handler,
            (response, callback) -> answer(what, request.header(), response, callback));
    RefCountedDirectByteBuffer memory = side.message(request.payload());
    transaction.succeed(new MetadataTransportBuffer(memory), 0, request.payload().length);
  }

  /** Answers a request. Thread-safe. */
  Transaction answer(String what, long header, ByteBuffer response, TransactionCallback callback) {
    byte[] payload = bytes(response);
    RapidsTransaction transaction =
        RapidsTransaction.begin("the answer to " + what, peer(), header, callback);
    side.run(transaction, () -> answer(transaction, header, payload));
    return transaction;
  }

  /** On the event thread: sends an answer. */
  void answer(RapidsTransaction transaction, long header, byte[] payload) {
    if (ended() != null) {
      transaction.fail(ended());
      return;
    }
    send(new Response(header, payload));
    transaction.succeed(null, payload.length, 0);
  }

  static byte[] bytes(ByteBuffer buffer) {
    byte[] bytes = new byte[buffer.remaining()];
    buffer.duplicate().get(bytes);
    return bytes;
  }

  /**
   * Announces a block, and sends it when the client grants it.
   *
   * @param release run when the block's memory is no longer in use
   */
  void send(
      RapidsTransaction transaction, long header, long address, long bytes, Runnable release) {
    if (ended() != null) {
      release.run();
      transaction.fail(ended());
      return;
    }
    long number = ++sends;
    TypedBuffer buffer = TypedBuffer.at(address, DataType.INT8, bytes);
    Deadline end = Deadline.after(side.settings().deadline());
    outgoing.put(number, new Outgoing(transaction, buffer, bytes, release, end));
    send(new Announcement(header, number, bytes));
  }

  private void take(Grant grant) {
    List<Outgoing> blocks = new ArrayList<>();
    for (long number : grant.sends()) {
      Outgoing block = outgoing.remove(number);
      if (block == null) {
        String reason =
            "executor %d grants block %d, which executor %d has not announced"
                .formatted(peer(), number, own());
        blocks.forEach(each -> passed(each, new IllegalArgumentException(reason)));
        throw new IllegalArgumentException(reason);
      }
      if (block.bytes() == 0) {
        block.release().run();
        block.transaction().succeed(null, 0, 0);
      } else {
        blocks.add(block);
      }
    }
    if (!blocks.isEmpty()) {
      lane()
          .submit(
              new BlockMove(
                  grant.epoch(),
                  UniqueId.decode(grant.communicatorId()),
                  blocks.stream().map(Outgoing::buffer).toList(),
                  true,
                  failure -> blocks.forEach(each -> passed(each, failure))));
    }
  }

  private void passed(Outgoing block, Throwable failure) {
    block.release().run();
    side.run(
        block.transaction(),
        () -> {
          if (failure == null) {
            block.transaction().succeed(null, block.bytes(), 0);
          } else {
            block.transaction().fail(String.valueOf(failure.getMessage()));
          }
        });
  }

  private void refused(Refusal refusal) {
    Outgoing block = outgoing.remove(refusal.number());
    if (block != null) {
      block.release().run();
      block.transaction().fail(refusal.reason());
    }
  }

  /**
   * Ends the connection if a client has not granted a block in time. The client may have granted
   * the block in the meantime, and then both ends would disagree on the next move.
   */
  @Override
  void expire() {
    for (Outgoing block : outgoing.values()) {
      if (block.end().expired()) {
        end(
            "executor %d had no memory for %d bytes of executor %d within %s"
                .formatted(peer(), block.bytes(), own(), block.end()));
        return;
      }
    }
  }

  @Override
  void endAll(String reason) {
    for (Outgoing block : new ArrayList<>(outgoing.values())) {
      block.release().run();
      block.transaction().fail(reason);
    }
    outgoing.clear();
    side.ended(this);
  }
}
