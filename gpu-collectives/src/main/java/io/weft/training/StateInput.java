package io.weft.training;

import io.weft.collectives.TypedBuffer;
import io.weft.memory.Memory;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.ReadableByteChannel;
import java.nio.charset.StandardCharsets;
import java.util.zip.CRC32C;

/**
 * Reads what {@link StateOutput} wrote, and not a byte more. Sizes are compared with the expected
 * ones before any allocation or write. Not thread-safe.
 */
final class StateInput {
  private static final int MAX_TEXT = 1 << 16;
  private static final int SKIP_BYTES = 1 << 16;

  private final ReadableByteChannel channel;
  private final String what;
  private final CRC32C crc = new CRC32C();
  private final ByteBuffer number = ByteBuffer.allocate(Long.BYTES).order(ByteOrder.LITTLE_ENDIAN);
  private final ByteBuffer view = ByteBuffer.allocateDirect(0);

  /**
   * Reads and checks the header.
   *
   * @param what names the state for messages, such as "a checkpoint"
   * @param newest version that this reader understands
   */
  StateInput(ReadableByteChannel channel, String what, long magic, int newest) throws IOException {
    this.channel = channel;
    this.what = what;
    if (number() != magic) {
      throw new StateException("these bytes are not " + what);
    }
    long version = number();
    if (version < 1 || version > newest) {
      throw new StateException(
          what + " of version " + version + "; this reads versions up to " + newest);
    }
    expect("byte order", StateOutput.machineOrder());
  }

  long number() throws IOException {
    number.clear();
    read(number);
    return number.flip().getLong();
  }

  String text() throws IOException {
    long bytes = number();
    if (bytes < 0 || bytes > MAX_TEXT) {
      throw new StateException(what + " holds a text of " + bytes + " bytes");
    }
    ByteBuffer text = ByteBuffer.allocate((int) bytes);
    read(text);
    return StandardCharsets.UTF_8.decode(text.flip()).toString();
  }

  void expect(String field, long expected) throws IOException {
    long found = number();
    if (found != expected) {
      throw other(field, found, expected);
    }
  }

  void expect(String field, String expected) throws IOException {
    String found = text();
    if (!found.equals(expected)) {
      throw other(field, found, expected);
    }
  }

  private StateException other(String field, Object found, Object expected) {
    return new StateException(
        what + " has " + found + " as " + field + " where " + expected + " is expected");
  }

  /** Reads into a buffer, which must have exactly the size that was written. */
  void memory(TypedBuffer into) throws IOException {
    expect("bytes of a buffer", into.bytes());
    for (long done = 0; done < into.bytes(); done += StateOutput.PIECE_BYTES) {
      int piece = (int) Math.min(StateOutput.PIECE_BYTES, into.bytes() - done);
      Memory.aim(view, into.address() + done, piece);
      read(view);
    }
  }

  /** Reads memory of this size and updates only the checksum. */
  void skipMemory(long bytes) throws IOException {
    expect("bytes of a buffer", bytes);
    ByteBuffer scratch = ByteBuffer.allocate(SKIP_BYTES);
    for (long left = bytes; left > 0; left -= scratch.capacity()) {
      scratch.clear().limit((int) Math.min(scratch.capacity(), left));
      read(scratch);
    }
  }

  /** Reads and compares the checksum. */
  void finish() throws IOException {
    long computed = crc.getValue();
    if (number() != computed) {
      throw new StateException(what + " is damaged: its checksum does not match");
    }
  }

  private void read(ByteBuffer into) throws IOException {
    int start = into.position();
    while (into.hasRemaining()) {
      if (channel.read(into) < 0) {
        throw new StateException(what + " ends too early");
      }
    }
    crc.update(into.duplicate().position(start));
  }
}
