package io.weft.spark.rapids.control;

import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/**
 * One control message of a connection between a client, which fetches, and a server.
 *
 * <p>A block moves in three steps. The server announces it. The client grants it when it has
 * memory. Both ends queue the move on the connection's data lane, which runs moves in the order of
 * the grants.
 */
public sealed interface ControlMessage {
  /** The longest text of a failure, in bytes; longer texts are cut. */
  int MOST_TEXT_BYTES = 4096;

  /**
   * A client's request.
   *
   * @param type number of the message type
   * @param header is returned with the answer
   */
  @SuppressWarnings("ArrayRecordComponent") // Never compared.
  record Request(int type, long header, byte[] payload) implements ControlMessage {}

  /** The answer to a request. */
  @SuppressWarnings("ArrayRecordComponent") // Never compared.
  record Response(long header, byte[] payload) implements ControlMessage {}

  /** There is no answer to a request, or no memory for an announced block. */
  record Refusal(boolean ofRequest, long number, String reason) implements ControlMessage {}

  /**
   * A server has a block to send.
   *
   * @param header of the client's request
   * @param send the server's number for the block
   * @param bytes of the block, 0 or more
   */
  record Announcement(long header, long send, long bytes) implements ControlMessage {}

  /**
   * A client has memory for a block.
   *
   * @param send the server's number for the block
   * @param epoch of the data lane: from 1, and one more after each failure
   * @param communicatorId id of the epoch's communicator, as text
   */
  record Grant(long send, long epoch, String communicatorId) implements ControlMessage {}

  /**
   * One bootstrap round for the communicator of an epoch.
   *
   * @param epoch of the data lane
   * @param round name of the round
   */
  @SuppressWarnings("ArrayRecordComponent") // Never compared.
  record BootstrapRound(long epoch, String round, byte[] payload) implements ControlMessage {}

  /** The client no longer needs the communicator of this epoch. */
  record Retire(long epoch) implements ControlMessage {}

  /** The message as bytes. */
  default ByteBuffer encode() {
    Encoder out = new Encoder();
    if (this instanceof Request each) {
      return out.kind(1).number(each.type()).number(each.header()).bytes(each.payload()).end();
    }
    if (this instanceof Response each) {
      return out.kind(2).number(each.header()).bytes(each.payload()).end();
    }
    if (this instanceof Refusal each) {
      int kind = each.ofRequest() ? 3 : 4;
      return out.kind(kind).number(each.number()).bytes(Encoder.cut(each.reason())).end();
    }
    if (this instanceof Announcement each) {
      return out.kind(5).number(each.header()).number(each.send()).number(each.bytes()).end();
    }
    if (this instanceof Grant each) {
      byte[] communicatorId = each.communicatorId().getBytes(StandardCharsets.UTF_8);
      return out.kind(6).number(each.send()).number(each.epoch()).bytes(communicatorId).end();
    }
    if (this instanceof BootstrapRound each) {
      byte[] round = each.round().getBytes(StandardCharsets.UTF_8);
      return out.kind(7).number(each.epoch()).bytes(round).bytes(each.payload()).end();
    }
    return out.kind(8).number(((Retire) this).epoch()).end();
  }

  /**
   * Reads a message.
   *
   * @throws IllegalArgumentException if it is not a message; nothing larger than the bytes is
   *     allocated
   */
  static ControlMessage decode(ByteBuffer bytes) {
    try {
      int kind = bytes.get();
      ControlMessage message = decode(kind, bytes);
      if (bytes.hasRemaining()) {
        throw new IllegalArgumentException(
            "%d bytes too many in a message of kind %d".formatted(bytes.remaining(), kind));
      }
      return message;
    } catch (BufferUnderflowException e) {
      throw new IllegalArgumentException("a message of the shuffle transport ends too early", e);
    }
  }

  private static ControlMessage decode(int kind, ByteBuffer in) {
    return switch (kind) {
      case 1 -> new Request((int) in.getLong(), in.getLong(), Encoder.read(in));
      case 2 -> new Response(in.getLong(), Encoder.read(in));
      case 3 -> new Refusal(true, in.getLong(), Encoder.text(in));
      case 4 -> new Refusal(false, in.getLong(), Encoder.text(in));
      case 5 -> announcement(in.getLong(), in.getLong(), in.getLong());
      case 6 -> new Grant(in.getLong(), in.getLong(), Encoder.text(in));
      case 7 -> new BootstrapRound(in.getLong(), Encoder.text(in), Encoder.read(in));
      case 8 -> new Retire(in.getLong());
      default -> throw new IllegalArgumentException("the shuffle transport has no message " + kind);
    };
  }

  private static Announcement announcement(long header, long send, long bytes) {
    if (bytes < 0) {
      throw new IllegalArgumentException("a block of " + bytes + " bytes was announced");
    }
    return new Announcement(header, send, bytes);
  }
}
