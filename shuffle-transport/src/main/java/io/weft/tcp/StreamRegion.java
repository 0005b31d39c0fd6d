package io.weft.tcp;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.WritableByteChannel;
import org.apache.spark.network.util.AbstractFileRegion;

/**
 * A stream as something Netty can write out without taking it into buffers of its own. The stream
 * is closed by its sender, not here. For one event loop.
 */
final class StreamRegion extends AbstractFileRegion {
  /** After so many bytes other connections of the event loop get their turn. */
  private static final long TURN_BYTES = 1 << 20;

  private static final ThreadLocal<ByteBuffer> GATHERED =
      ThreadLocal.withInitial(() -> ByteBuffer.allocateDirect(256 << 10));

  private final ServedStream stream;
  private final long count;
  private final StreamReader reader;
  private long transferred;

  StreamRegion(ServedStream stream) {
    this.stream = stream;
    this.count = stream.bytes();
    this.reader = new StreamReader(stream, GATHERED.get());
  }

  @Override
  public long position() {
    return 0;
  }

  @Override
  public long transferred() {
    return transferred;
  }

  @Override
  public long count() {
    return count;
  }

  @Override
  public long transferTo(WritableByteChannel target, long position) throws IOException {
    long written = 0;
    while (position + written < count && written < TURN_BYTES) {
      ByteBuffer piece = reader.from(position + written);
      written += target.write(piece);
      if (piece.hasRemaining()) {
        break;
      }
    }
    if (written > 0) {
      stream.progressed();
    }
    transferred += written;
    return written;
  }

  @Override
  protected void deallocate() {
    // Nothing is owned here.
  }
}
