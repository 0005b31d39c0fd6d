package io.weft.wire;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;

/**
 * Reads a received message. Checks every length against the remaining bytes before it allocates.
 * For one thread.
 */
final class WireReader {
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
  String text(int mostBytes, String field) throws WireException {
    int length = elements(1, field);
    require(length <= mostBytes, field, length);
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
