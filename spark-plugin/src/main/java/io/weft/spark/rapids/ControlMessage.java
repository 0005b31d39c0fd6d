package io.weft.spark.rapids;

import java.io.ByteArrayOutputStream;
import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.stream.Stream;

/**
 * One control message of a connection between a client, which fetches, and a server.
 *
 * <p>A block moves in three steps. The server announces it. The client grants it when it has
 * memory, together with other blocks that have memory by then. Both ends queue the blocks of a
 * grant as one move on the connection's data lane, which runs moves in the order of the grants.
 */
sealed interface ControlMessage {
  /** The longest text of a failure, in bytes; longer texts are cut. */
  int MAX_TEXT_BYTES = 4096;

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
   * A client has memory for blocks, which move together.
   *
   * @param sends the server's numbers for the blocks, one or more
   * @param epoch of the data lane: from 1, and one more after each failure
   * @param communicatorId id of the epoch's communicator, as text
   */
  record Grant(List<Long> sends, long epoch, String communicatorId) implements ControlMessage {}

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
    ControlEncoder out = new ControlEncoder();
    if (this instanceof Request each) {
      return out.kind(1).number(each.type()).number(each.header()).bytes(each.payload()).end();
    }
    if (this instanceof Response each) {
      return out.kind(2).number(each.header()).bytes(each.payload()).end();
    }
    if (this instanceof Refusal each) {
      int kind = each.ofRequest() ? 3 : 4;
      return out.kind(kind).number(each.number()).bytes(ControlEncoder.cut(each.reason())).end();
    }
    if (this instanceof Announcement each) {
      return out.kind(5).number(each.header()).number(each.send()).number(each.bytes()).end();
    }
    if (this instanceof Grant each) {
      byte[] communicatorId = each.communicatorId().getBytes(StandardCharsets.UTF_8);
      return out.kind(6).numbers(each.sends()).number(each.epoch()).bytes(communicatorId).end();
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
      case 1 -> new Request((int) in.getLong(), in.getLong(), ControlEncoder.read(in));
      case 2 -> new Response(in.getLong(), ControlEncoder.read(in));
      case 3 -> new Refusal(true, in.getLong(), ControlEncoder.text(in));
      case 4 -> new Refusal(false, in.getLong(), ControlEncoder.text(in));
      case 5 -> announcement(in.getLong(), in.getLong(), in.getLong());
      case 6 -> new Grant(ControlEncoder.numbers(in), in.getLong(), ControlEncoder.text(in));
      case 7 -> new BootstrapRound(in.getLong(), ControlEncoder.text(in), ControlEncoder.read(in));
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

  /**
   * The first message of a client on a connection. The server answers with its own hello, with the
   * two executors swapped, or refuses.
   *
   * @param version of Weft; must be the same at both ends
   * @param executor the sender
   * @param wanted the executor that the sender expects at the other end
   */
  record ControlHello(String version, long executor, long wanted) {
    private static final long MAGIC = 0x5765667452617069L;

    ByteBuffer encode() {
      return new ControlEncoder()
          .number(MAGIC)
          .bytes(version.getBytes(StandardCharsets.UTF_8))
          .number(executor)
          .number(wanted)
          .end();
    }

    /**
     * Reads what {@link #encode} wrote.
     *
     * @throws IllegalArgumentException if the bytes have another format
     */
    static ControlHello decode(ByteBuffer in) {
      try {
        if (in.getLong() != MAGIC) {
          throw new IllegalArgumentException(
              "the connecting process is not Weft's shuffle transport");
        }
        return new ControlHello(ControlEncoder.text(in), in.getLong(), in.getLong());
      } catch (BufferUnderflowException e) {
        throw new IllegalArgumentException("a first message of the shuffle transport is short", e);
      }
    }

    /**
     * Checks that the hello is for this executor and has its version.
     *
     * @param ownVersion of Weft at this end
     * @param own this executor
     * @throws IllegalArgumentException if not; the message names both executors
     */
    public void check(String ownVersion, long own) {
      if (wanted != own) {
        throw new IllegalArgumentException(
            "executor %d expected executor %d and reached executor %d: the address is outdated"
                .formatted(executor, wanted, own));
      }
      if (!version.equals(ownVersion)) {
        throw new IllegalArgumentException(
            "executor %d has Weft %s and executor %d has Weft %s: use one version"
                .formatted(executor, version, own, ownVersion));
      }
    }
  }

  /** Encodes a message: numbers of 8 bytes, and byte arrays with a length. Used by one thread. */
  static final class ControlEncoder {
    private final ByteArrayOutputStream out = new ByteArrayOutputStream();

    ControlEncoder kind(int kind) {
      out.write(kind);
      return this;
    }

    ControlEncoder number(long value) {
      out.writeBytes(ByteBuffer.allocate(Long.BYTES).putLong(value).array());
      return this;
    }

    /** Their count, then the numbers. */
    ControlEncoder numbers(List<Long> values) {
      out.writeBytes(ByteBuffer.allocate(Integer.BYTES).putInt(values.size()).array());
      values.forEach(this::number);
      return this;
    }

    ControlEncoder bytes(byte[] value) {
      out.writeBytes(ByteBuffer.allocate(Integer.BYTES).putInt(value.length).array());
      out.writeBytes(value);
      return this;
    }

    ByteBuffer end() {
      return ByteBuffer.wrap(out.toByteArray());
    }

    /** A text of limited length, for a failure. */
    static byte[] cut(String text) {
      byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
      if (bytes.length <= ControlMessage.MAX_TEXT_BYTES) {
        return bytes;
      }
      return text.substring(0, ControlMessage.MAX_TEXT_BYTES / 4).getBytes(StandardCharsets.UTF_8);
    }

    static byte[] read(ByteBuffer in) {
      int length = in.getInt();
      if (length < 0 || length > in.remaining()) {
        throw new IllegalArgumentException(
            "a message of the shuffle transport declares %d bytes and has %d"
                .formatted(length, in.remaining()));
      }
      byte[] bytes = new byte[length];
      in.get(bytes);
      return bytes;
    }

    static List<Long> numbers(ByteBuffer in) {
      int count = in.getInt();
      if (count < 1 || count > in.remaining() / Long.BYTES) {
        throw new IllegalArgumentException(
            "a message of the shuffle transport declares %d numbers in %d bytes"
                .formatted(count, in.remaining()));
      }
      return Stream.generate(in::getLong).limit(count).toList();
    }

    static String text(ByteBuffer in) {
      return new String(read(in), StandardCharsets.UTF_8);
    }
  }
}
