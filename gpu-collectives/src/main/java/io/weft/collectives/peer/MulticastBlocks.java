package io.weft.collectives.peer;

/**
 * Blocks of one size that lie one behind the other in the memory of every rank, each of which one
 * rank writes for all.
 *
 * @param send address of this rank's block on its device; any where none is its own
 * @param blockBytes 1 or more
 * @param offset where the first block begins, in bytes from the start of the memory
 * @param first the rank whose block is first
 * @param count 1 or more; the blocks behind it are those of the ranks behind
 */
public record MulticastBlocks(long send, long blockBytes, long offset, int first, int count) {
  boolean has(int rank) {
    return rank >= first && rank < first + count;
  }

  /** Where a rank's block begins. */
  long offset(int rank) {
    return offset + (rank - first) * blockBytes;
  }
}
