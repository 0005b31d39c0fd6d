package io.weft.migration;

import io.weft.catalog.OwnedBlocks;
import io.weft.catalog.OwnedOutput;
import java.nio.ByteBuffer;

/**
 * The bytes of one stream in order, and the hold on the shuffle they lie in. For one thread at a
 * time.
 */
final class HeldPieces implements AutoCloseable {
  private final OwnedBlocks hold;
  private final OwnedOutput output;
  private ByteBuffer piece;
  private int nextChunk;

  /** Takes the hold over. */
  HeldPieces(OwnedBlocks hold, ByteBuffer head, OwnedOutput output) {
    this.hold = hold;
    this.output = output;
    this.piece = head;
  }

  /** What comes next, to be read from; null at the end. */
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

  /** Lets the memory go; no byte may be read any more. Can be repeated. */
  @Override
  public void close() {
    hold.close();
  }
}
