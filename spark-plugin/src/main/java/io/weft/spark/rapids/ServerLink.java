package io.weft.spark.rapids;

import com.nvidia.spark.rapids.shuffle.MetadataTransportBuffer;
import com.nvidia.spark.rapids.shuffle.RefCountedDirectByteBuffer;
import com.nvidia.spark.rapids.shuffle.Transaction;
import com.nvidia.spark.rapids.shuffle.TransactionCallback;
import io.weft.collectives.UniqueId;
import io.weft.collectives.buffer.DataType;
import io.weft.collectives.buffer.TypedBuffer;
import io.weft.device.Deadline;
import io.weft.spark.rapids.control.ControlChannel;
import io.weft.spark.rapids.control.ControlMessage;
import io.weft.spark.rapids.control.ControlMessage.Announcement;
import io.weft.spark.rapids.control.ControlMessage.Grant;
import io.weft.spark.rapids.control.ControlMessage.Refusal;
import io.weft.spark.rapids.control.ControlMessage.Request;
import io.weft.spark.rapids.control.ControlMessage.Response;
import io.weft.spark.rapids.control.ControlMessage.Retire;
import io.weft.spark.rapids.data.Passage;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Map;

/** The server's end of a connection: takes a client's requests and sends it blocks. */
final class ServerLink extends Link {
  private final ServerSide side;
  private final Map<Long, Outgoing> outgoing = new HashMap<>();
  private long sends;

  /** A block that the client has not granted, or that is on its way. */
  private record Outgoing(
      RapidsTransaction transaction,
      TypedBuffer buffer,
      long bytes,
      Runnable letGo,
      Deadline end) {}

  /** The end of a connection that a client has opened. */
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
      say(new Refusal(true, request.header(), reason));
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

  /** Answers a request; of any thread. */
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
    say(new Response(header, payload));
    transaction.succeed(null, payload.length, 0);
  }

  static byte[] bytes(ByteBuffer buffer) {
    byte[] bytes = new byte[buffer.remaining()];
    buffer.duplicate().get(bytes);
    return bytes;
  }

  /**
   * Sends a block to the client when it grants it.
   *
   * @param letGo run when the block's memory is not touched any more
   */
  void send(RapidsTransaction transaction, long header, long address, long bytes, Runnable letGo) {
    if (ended() != null) {
      letGo.run();
      transaction.fail(ended());
      return;
    }
    long number = ++sends;
    TypedBuffer buffer = TypedBuffer.at(address, DataType.INT8, bytes);
    Deadline end = Deadline.after(side.settings().deadline());
    outgoing.put(number, new Outgoing(transaction, buffer, bytes, letGo, end));
    say(new Announcement(header, number, bytes));
  }

  private void take(Grant grant) {
    Outgoing block = outgoing.remove(grant.send());
    if (block == null) {
      throw new IllegalArgumentException(
          "executor %d grants block %d, which executor %d has not announced"
              .formatted(peer(), grant.send(), own()));
    }
    if (block.bytes() == 0) {
      block.letGo().run();
      block.transaction().succeed(null, 0, 0);
      return;
    }
    lane()
        .submit(
            new Passage(
                grant.epoch(),
                UniqueId.decode(grant.meeting()),
                block.buffer(),
                true,
                failure -> passed(block, failure)));
  }

  private void passed(Outgoing block, Throwable failure) {
    block.letGo().run();
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
      block.letGo().run();
      block.transaction().fail(refusal.reason());
    }
  }

  /**
   * A client that grants nothing for so long is given up with its connection: it may have granted
   * this block in the meantime, and then both ends would not agree on what passes next.
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
      block.letGo().run();
      block.transaction().fail(reason);
    }
    outgoing.clear();
    side.ended(this);
  }
}
