package io.weft.shuffle.net;

import io.weft.shuffle.net.WireException.DamagedMessageException;
import io.weft.shuffle.store.Checksum;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;

/**
 * The header of every message. All numbers are little-endian.
 *
 * <pre>
 *   0               4       6       8               12
 *  +---------------+-------+-------+---------------+
 *  | magic "WFTM"  | vers. | type  | checksum      |
 *  +---------------+-------+-------+---------------+
 * </pre>
 *
 * The checksum is the CRC32C of all bytes after the header.
 *
 * <p>The version covers the layout of all messages. Both sides must have the same version.
 */
final class MessageHeader {
  static final short VERSION = 4;
  static final int BYTES = 12;

  static final short OPEN_BLOCKS = 1;
  static final short BLOCKS_OPENED = 2;
  static final short BLOCKS_REFUSED = 3;
  static final short CLOSE_STREAM = 4;
  static final short SERVICE = 5;

  private static final int MAGIC = 0x4d544657;

  private MessageHeader() {}

  /** Allocates a buffer for a message of this size and writes its header. */
  static ByteBuffer allocate(short type, int bytes) {
    return ByteBuffer.allocate(bytes)
        .order(ByteOrder.LITTLE_ENDIAN)
        .putInt(MAGIC)
        .putShort(VERSION)
        .putShort(type)
        .putInt(0);
  }

  /** Finishes a message: sets its checksum and makes it ready to be sent. */
  static ByteBuffer finish(ByteBuffer written) {
    ByteBuffer message = written.flip();
    return message.putInt(BYTES - 4, checksum(message));
  }

  private static int checksum(ByteBuffer message) {
    return Checksum.of(message.duplicate().position(message.position() + BYTES));
  }

  /** Checks the header of a received message. Returns a reader of the bytes after it. */
  static WireReader open(ByteBuffer received, String message, short type) throws WireException {
    WireReader reader = new WireReader(received, message);
    int magic = reader.int32("magic");
    reader.require(magic == MAGIC, "magic", magic);
    short version = reader.int16("version");
    if (version != VERSION) {
      throw new WireException(
          message
              + ": the peer speaks version "
              + version
              + " of Weft's protocol, this executor "
              + VERSION
              + "; give all executors the same Weft jar");
    }
    short found = reader.int16("type");
    int promised = reader.int32("checksum");
    int sum = checksum(received);
    if (sum != promised) {
      throw new DamagedMessageException(
          "%s: its bytes have CRC32C %08x, it was %08x".formatted(message, sum, promised));
    }
    reader.require(found == type, "type", found);
    return reader;
  }

  /** The type of a received message, or -1 if it is shorter than a header. */
  static short type(ByteBuffer received) {
    return received.remaining() < BYTES
        ? -1
        : received.slice().order(ByteOrder.LITTLE_ENDIAN).getShort(6);
  }

  /**
   * Reads a received message. Checks every length against the remaining bytes before it allocates.
   * For one thread.
   */
  static final class WireReader {
    private final ByteBuffer bytes;
    private final String message;

    WireReader(ByteBuffer received, String message) {
      this.bytes = received.slice().order(ByteOrder.LITTLE_ENDIAN);
      this.message = message;
    }

    /** The name of the message, for errors. */
    String message() {
      return message;
    }

    short int16(String field) throws WireException {
      requireLeft(2, field);
      return bytes.getShort();
    }

    int int32(String field) throws WireException {
      requireLeft(4, field);
      return bytes.getInt();
    }

    long int64(String field) throws WireException {
      requireLeft(8, field);
      return bytes.getLong();
    }

    /** Reads a number that must not be negative. */
    int count(String field) throws WireException {
      int value = int32(field);
      require(value >= 0, field, value);
      return value;
    }

    /** Reads the number of elements that follow. Requires that all their bytes are present. */
    int elements(int elementBytes, String field) throws WireException {
      int value = count(field);
      requireLeft((long) elementBytes * value, field);
      return value;
    }

    int[] ints(int count, String field) throws WireException {
      requireLeft(4L * count, field);
      int[] values = new int[count];
      bytes.asIntBuffer().get(values);
      bytes.position(bytes.position() + 4 * count);
      return values;
    }

    long[] longs(int count, String field) throws WireException {
      requireLeft(8L * count, field);
      long[] values = new long[count];
      bytes.asLongBuffer().get(values);
      bytes.position(bytes.position() + 8 * count);
      return values;
    }

    /** Reads text of at most this many UTF-8 bytes. */
    String text(int maxBytes, String field) throws WireException {
      int length = elements(1, field);
      require(length <= maxBytes, field, length);
      byte[] utf8 = new byte[length];
      bytes.get(utf8);
      return new String(utf8, StandardCharsets.UTF_8);
    }

    /** Reads a length and that many bytes. */
    byte[] bytes(String field) throws WireException {
      byte[] values = new byte[elements(1, field)];
      bytes.get(values);
      return values;
    }

    /** Requires that no bytes follow. */
    void end() throws WireException {
      require(!bytes.hasRemaining(), "bytes after its end", bytes.remaining());
    }

    void require(boolean condition, String field, long value) throws WireException {
      if (!condition) {
        throw new WireException(message + ": bad " + field + ": " + value);
      }
    }

    private void requireLeft(long needed, String field) throws WireException {
      if (needed > bytes.remaining()) {
        throw new WireException(
            message
                + ": truncated at "
                + field
                + ": "
                + needed
                + " bytes needed, "
                + bytes.remaining()
                + " left");
      }
    }
  }
}
