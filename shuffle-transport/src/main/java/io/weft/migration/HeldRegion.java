package io.weft.migration;

import io.weft.tcp.PacedRegion;
import java.nio.ByteBuffer;

/** Sends the pieces of a migrated map output. Netty closes it at the end. */
final class HeldRegion extends PacedRegion {
  private final HeldPieces pieces;

  HeldRegion(HeldPieces pieces, long count) {
    super(count);
    this.pieces = pieces;
  }

  /** Ignores the position, because the pieces are read once and in order. */
  @Override
  protected ByteBuffer from(long position) {
    return pieces.current();
  }

  @Override
  protected void deallocate() {
    pieces.close();
  }
}
