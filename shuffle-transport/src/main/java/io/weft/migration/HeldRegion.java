package io.weft.migration;

import io.weft.tcp.PacedRegion;
import java.nio.ByteBuffer;

/** A map output that moves; closed when Netty is done. */
final class HeldRegion extends PacedRegion {
  private final HeldPieces pieces;

  HeldRegion(HeldPieces pieces, long count) {
    super(count);
    this.pieces = pieces;
  }

  /** The position is where the pieces are: they are read once, in order. */
  @Override
  protected ByteBuffer from(long position) {
    return pieces.current();
  }

  @Override
  protected void deallocate() {
    pieces.close();
  }
}
