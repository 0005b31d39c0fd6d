package io.weft.transfer;

import io.weft.wire.BlocksOpened;
import io.weft.wire.OpenBlocks;
import java.util.List;

/**
 * The content of one request.
 *
 * @param queue of the request's peer
 * @param requests in order, at least one
 * @param firstChunk number of chunks of the first range that were delivered before
 * @param mostChunks limit for the chunks of the answer
 * @param room bytes to reserve for the answer
 * @param repeated whether it requests the rest of a broken answer. The queue has already skipped
 *     that answer, so the new answer must have exactly the rest
 */
record TransferPlan(
    PeerQueue queue,
    List<BlockRequest> requests,
    int firstChunk,
    int mostChunks,
    long room,
    boolean repeated) {

  /** Returns the message for this plan. */
  OpenBlocks message(long mostBytes, TransferLimits limits) {
    return new OpenBlocks(
        queue.peer().incarnation(),
        mostBytes,
        firstChunk,
        mostChunks,
        limits.checksums(),
        limits.compression(),
        PeerQueue.ranges(requests));
  }

  /**
   * Returns a plan for the chunks of an answer that did not arrive. Without an answer, returns
   * this.
   */
  TransferPlan rest(BlocksOpened answer, int arrivedChunks) {
    if (answer == null) {
      return this;
    }
    int range = 0;
    int before = 0;
    while (before + answer.rangeChunks(range) <= arrivedChunks) {
      before += answer.rangeChunks(range++);
    }
    int skipped = (range == 0 ? firstChunk : 0) + arrivedChunks - before;
    List<BlockRequest> rest = requests.subList(range, answer.ranges());
    return new TransferPlan(queue, rest, skipped, answer.chunks() - arrivedChunks, room, true);
  }
}
