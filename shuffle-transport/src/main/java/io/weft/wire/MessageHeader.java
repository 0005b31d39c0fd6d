package io.weft.wire;

import io.weft.integrity.Checksum;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

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
  static ByteBuffer seal(ByteBuffer written) {
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
}
