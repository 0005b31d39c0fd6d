package io.weft.transfer;

import io.weft.catalog.BlockKey;
import io.weft.encryption.ChunkName;
import io.weft.wire.BlocksOpened;

/** The names of an answer's chunks, which were asked for by their ranges. For one thread. */
final class ChunkNames {
  private final BlocksOpened answer;

  /** Chunks before the range of the last one. */
  private int before;

  private int range;
  private int chunk;
  private int position;

  ChunkNames(BlocksOpened answer) {
    this.answer = answer;
    this.position = answer.table().firstPosition();
  }

  /**
   * The name of a chunk.
   *
   * @param index at least that of the call before
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

  /** Ranges may be empty. */
  private void findRange() {
    while (chunk >= before + answer.rangeChunks(range)) {
      before += answer.rangeChunks(range);
      range++;
    }
  }
}
