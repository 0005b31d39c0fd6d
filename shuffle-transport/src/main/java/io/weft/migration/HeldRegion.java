package io.weft.migration;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.WritableByteChannel;
import org.apache.spark.network.util.AbstractFileRegion;

/** A stream that Netty writes out without a copy; closed when Netty is done. For one event loop. */
final class HeldRegion extends AbstractFileRegion {
  /** After so many bytes other connections of the event loop get their turn. */
  private static final long TURN_BYTES = 1 << 20;

  private final HeldPieces pieces;
  private final long count;
  private long transferred;

  HeldRegion(HeldPieces pieces, long count) {
    this.pieces = pieces;
    this.count = count;
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
    if (position != transferred) {
      throw new IllegalArgumentException(
          "position " + position + " of a stream of which " + transferred + " bytes are gone");
    }
    long written = 0;
    ByteBuffer piece = pieces.current();
    while (piece != null && written < TURN_BYTES) {
      written += target.write(piece);
      if (piece.hasRemaining()) {
        break;
      }
      piece = pieces.current();
    }
    transferred += written;
    return written;
  }

  @Override
  protected void deallocate() {
    pieces.close();
  }
}
