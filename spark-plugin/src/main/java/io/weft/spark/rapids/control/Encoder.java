package io.weft.spark.rapids.control;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/** Encodes a message: numbers of 8 bytes, and byte arrays with a length. Used by one thread. */
final class Encoder {
  private final ByteArrayOutputStream out = new ByteArrayOutputStream();

  Encoder kind(int kind) {
    out.write(kind);
    return this;
  }

  Encoder number(long value) {
    out.writeBytes(ByteBuffer.allocate(Long.BYTES).putLong(value).array());
    return this;
  }

  Encoder bytes(byte[] value) {
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
    if (bytes.length <= ControlMessage.MOST_TEXT_BYTES) {
      return bytes;
    }
    return text.substring(0, ControlMessage.MOST_TEXT_BYTES / 4).getBytes(StandardCharsets.UTF_8);
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

  static String text(ByteBuffer in) {
    return new String(read(in), StandardCharsets.UTF_8);
  }
}
