package io.weft.tcp;

import java.nio.ByteBuffer;

/** Sends a stream of blocks. The transport closes the stream, not this class. */
final class StreamRegion extends PacedRegion {
  private static final ThreadLocal<ByteBuffer> GATHERED =
      ThreadLocal.withInitial(() -> ByteBuffer.allocateDirect(256 << 10));

  private final ServedStream stream;
  private final StreamReader reader;

  StreamRegion(ServedStream stream) {
    super(stream.bytes());
    this.stream = stream;
    this.reader = new StreamReader(stream, GATHERED.get());
  }

  @Override
  protected ByteBuffer from(long position) {
    return reader.from(position);
  }

  @Override
  protected void progressed() {
    stream.progressed();
  }

  @Override
  protected void deallocate() {
    // The region owns nothing.
  }
}
