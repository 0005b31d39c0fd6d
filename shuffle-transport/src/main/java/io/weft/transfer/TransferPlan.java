package io.weft.transfer;

import io.weft.wire.BlocksOpened;
import io.weft.wire.OpenBlocks;
import java.util.List;

/**
 * What one request asks for.
 *
 * @param queue it belongs to
 * @param requests in order, at least one
 * @param firstChunk chunks of the first request that were delivered before
 * @param mostChunks to be answered with at most
 * @param room bytes to set aside for the answer
 * @param repeated whether it asks for the rest of an answer that broke off. The queue has moved on
 *     then, so the answer must have exactly that rest
 */
record TransferPlan(
    PeerQueue queue,
    List<BlockRequest> requests,
    int firstChunk,
    int mostChunks,
    long room,
    boolean repeated) {

  /** The message for it. */
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

  /** Asks for the chunks of an answer that did not arrive, or for the same if there is none. */
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
