package io.weft.collectives.peer;

/**
 * Consecutive blocks of one size in the memory of every rank. One rank writes each block for all.
 *
 * @param send device address of this rank's block; any value if no block is its own
 * @param blockBytes 1 or more
 * @param offset where the first block begins, in bytes from the start of the memory
 * @param first the rank of the first block
 * @param count 1 or more; the following blocks belong to the following ranks
 */
public record MulticastBlocks(long send, long blockBytes, long offset, int first, int count) {
  boolean has(int rank) {
    return rank >= first && rank < first + count;
  }

  /** The offset of a rank's block. */
  long offset(int rank) {
    return offset + (rank - first) * blockBytes;
  }
}
