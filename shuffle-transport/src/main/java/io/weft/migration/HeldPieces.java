package io.weft.migration;

import io.weft.catalog.OwnedBlocks;
import io.weft.catalog.OwnedOutput;
import java.nio.ByteBuffer;

/** The bytes of one stream in order, with the hold on their shuffle. For one thread at a time. */
final class HeldPieces implements AutoCloseable {
  private final OwnedBlocks hold;
  private final OwnedOutput output;
  private ByteBuffer piece;
  private int nextChunk;

  /** Takes ownership of the hold. */
  HeldPieces(OwnedBlocks hold, ByteBuffer head, OwnedOutput output) {
    this.hold = hold;
    this.output = output;
    this.piece = head;
  }

  /** The buffer to read next; null at the end. */
  ByteBuffer current() {
    while (!piece.hasRemaining()) {
      if (nextChunk == output.index().chunks()) {
        return null;
      }
      piece = output.view(nextChunk);
      nextChunk++;
    }
    return piece;
  }

  /** Releases the memory. No byte may be read afterwards. Can be repeated. */
  @Override
  public void close() {
    hold.close();
  }
}
