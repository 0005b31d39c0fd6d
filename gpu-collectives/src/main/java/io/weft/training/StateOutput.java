package io.weft.training;

import io.weft.collectives.TypedBuffer;
import io.weft.memory.Memory;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.WritableByteChannel;
import java.nio.charset.StandardCharsets;
import java.util.zip.CRC32C;

/**
 * Writes a state.
 *
 * <pre> long magic | long version | long byte order of memory (1 little, 2 big) numbers (long),
 * texts (long bytes, UTF-8) and memory (long bytes, unchanged) long CRC-32C of everything before
 * </pre>
 *
 * <p>Numbers are little-endian. Memory is written directly, without a copy. Not thread-safe.
 */
final class StateOutput {
  static final int PIECE_BYTES = 1 << 24;

  private final WritableByteChannel channel;
  private final CRC32C crc = new CRC32C();
  private final ByteBuffer number = ByteBuffer.allocate(Long.BYTES).order(ByteOrder.LITTLE_ENDIAN);
  private final ByteBuffer view = ByteBuffer.allocateDirect(0);

  StateOutput(WritableByteChannel channel, long magic, int version) throws IOException {
    this.channel = channel;
    number(magic);
    number(version);
    number(machineOrder());
  }

  static int machineOrder() {
    return ByteOrder.nativeOrder() == ByteOrder.LITTLE_ENDIAN ? 1 : 2;
  }

  void number(long value) throws IOException {
    number.clear();
    number.putLong(value).flip();
    write(number);
  }

  void text(String value) throws IOException {
    byte[] bytes = value.getBytes(StandardCharsets.UTF_8);
    number(bytes.length);
    write(ByteBuffer.wrap(bytes));
  }

  void memory(TypedBuffer buffer) throws IOException {
    number(buffer.bytes());
    for (long done = 0; done < buffer.bytes(); done += PIECE_BYTES) {
      Memory.aim(view, buffer.address() + done, (int) Math.min(PIECE_BYTES, buffer.bytes() - done));
      write(view);
    }
  }

  void finish() throws IOException {
    number(crc.getValue());
  }

  private void write(ByteBuffer bytes) throws IOException {
    crc.update(bytes.duplicate());
    while (bytes.hasRemaining()) {
      if (channel.write(bytes) < 0) {
        throw new IOException(channel + " accepts no more bytes");
      }
    }
  }
}
