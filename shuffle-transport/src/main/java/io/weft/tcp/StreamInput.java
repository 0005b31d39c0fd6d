package io.weft.tcp;

import java.io.InputStream;
import java.nio.ByteBuffer;

/** Reads a stream as an input stream. Used for TLS, which copies the bytes in any case. */
final class StreamInput extends InputStream {
  private final ServedStream stream;
  private final StreamReader reader;
  private long position;

  StreamInput(ServedStream stream) {
    this.stream = stream;
    this.reader = new StreamReader(stream, ByteBuffer.allocate(64 << 10));
  }

  @Override
  public int read() {
    if (position == stream.bytes()) {
      return -1;
    }
    return reader.from(position++).get() & 0xff;
  }

  @Override
  public int read(byte[] into, int offset, int length) {
    if (length == 0) {
      return 0;
    }
    if (position == stream.bytes()) {
      return -1;
    }
    ByteBuffer piece = reader.from(position);
    int count = Math.min(length, piece.remaining());
    piece.get(into, offset, count);
    stream.progressed();
    position += count;
    return count;
  }

  @Override
  public int available() {
    return (int) Math.min(Integer.MAX_VALUE, stream.bytes() - position);
  }
}
