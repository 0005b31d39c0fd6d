package io.weft.transfer;

import io.weft.catalog.BlockKey;
import io.weft.encryption.ChunkName;
import io.weft.wire.BlocksOpened;

/** Computes the names of an answer's chunks from the requested ranges. For one thread. */
final class ChunkNames {
  private final BlocksOpened answer;

  /** The number of chunks before the current range. */
  private int before;

  private int range;
  private int chunk;
  private int position;

  ChunkNames(BlocksOpened answer) {
    this.answer = answer;
    this.position = answer.table().firstPosition();
  }

  /**
   * Returns the name of a chunk.
   *
   * @param index at least that of the previous call
   */
  ChunkName of(int index) {
    findRange();
    while (chunk < index) {
      int partition = answer.partition(chunk);
      chunk++;
      boolean sameRange = chunk < before + answer.rangeChunks(range);
      boolean sameBlock = sameRange && answer.partition(chunk) == partition;
      position = sameBlock ? position + 1 : 0;
      findRange();
    }
    BlockKey key = answer.key(range);
    return new ChunkName(key.shuffleId(), key.mapId(), answer.partition(index), position);
  }

  /** Moves to the range of the current chunk. Ranges may be empty. */
  private void findRange() {
    while (chunk >= before + answer.rangeChunks(range)) {
      before += answer.rangeChunks(range);
      range++;
    }
  }
}
