package io.weft.migration;

import java.io.InputStream;
import java.nio.ByteBuffer;
import java.util.Objects;

/** Reads the pieces of a map output as an input stream. For one thread. */
final class HeldInput extends InputStream {
  private static final int BYTE_MASK = 0xff;

  private final HeldPieces pieces;

  HeldInput(HeldPieces pieces) {
    this.pieces = pieces;
  }

  @Override
  public int read() {
    ByteBuffer piece = pieces.current();
    return piece == null ? -1 : piece.get() & BYTE_MASK;
  }

  @Override
  public int read(byte[] into, int offset, int length) {
    Objects.checkFromIndexSize(offset, length, into.length);
    if (length == 0) {
      return 0;
    }
    ByteBuffer piece = pieces.current();
    if (piece == null) {
      return -1;
    }
    int count = Math.min(length, piece.remaining());
    piece.get(into, offset, count);
    return count;
  }

  @Override
  public void close() {
    pieces.close();
  }
}
