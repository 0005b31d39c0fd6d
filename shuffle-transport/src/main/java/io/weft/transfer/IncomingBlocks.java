package io.weft.transfer;

import io.weft.wire.BlocksOpened;

/**
 * The reader's view of a request: which chunks were delivered and whether their memory is still in
 * use. For the reader's thread, except for the signal.
 */
final class IncomingBlocks {
  private final BlockTransfer transfer;
  private final Signal signal;
  private boolean announced;
  private boolean broken;
  private int delivered;
  private int inUse;
  private int range;
  private int rangeEnd;

  /**
   * Takes ownership of the transfer.
   *
   * @param signal raised while this object is in the reader's event queue
   */
  IncomingBlocks(BlockTransfer transfer, Signal signal) {
    this.transfer = transfer;
    this.signal = signal;
  }

  BlockTransfer transfer() {
    return transfer;
  }

  /** Clears the signal. Must be called before the state is read: later changes signal again. */
  void clearSignal() {
    signal.clear();
  }

  /** Returns true once, after the answer has arrived. */
  boolean takeAnnouncement() {
    boolean first = !announced && transfer.answer() != null;
    announced |= first;
    return first;
  }

  /** Marks the request as failed. Another request fetches the missing chunks. */
  void breakOff() {
    broken = true;
  }

  boolean isBroken() {
    return broken;
  }

  /** Moves to the next chunk that has arrived. Returns false if there is none. */
  boolean next(Chunk current) {
    if (!announced || delivered == transfer.arrivedChunks()) {
      return false;
    }
    BlocksOpened answer = transfer.answer();
    if (delivered == 0) {
      rangeEnd = answer.rangeChunks(0);
    }
    while (delivered >= rangeEnd) {
      rangeEnd += answer.rangeChunks(++range);
    }
    current.set(
        transfer.plan().requests().get(range),
        answer.partition(delivered),
        answer.rows(delivered),
        transfer.address(delivered),
        answer.length(delivered));
    delivered++;
    return true;
  }

  /** Whether no more chunks will arrive and all were delivered. */
  boolean isDelivered() {
    boolean known = announced || transfer.answer() == null;
    return known && transfer.isEnded() && delivered == transfer.arrivedChunks();
  }

  /** Counts one more chunk that the task reads. */
  void use() {
    inUse++;
  }

  /** Counts one chunk less. Returns true if the memory is no longer needed. */
  boolean unuse() {
    inUse--;
    return isUnused();
  }

  boolean isUnused() {
    return inUse == 0 && isDelivered();
  }

  /** The block request to name in an error. */
  BlockRequest failedRequest() {
    return transfer.plan().requests().get(failedRange());
  }

  /** The first partition of the failed block request that did not arrive. */
  int failedPartition() {
    BlocksOpened answer = transfer.answer();
    return answer == null || transfer.arrivedChunks() == answer.chunks()
        ? failedRequest().startPartition()
        : answer.partition(transfer.arrivedChunks());
  }

  private int failedRange() {
    BlocksOpened answer = transfer.answer();
    if (answer == null) {
      return Math.max(0, transfer.refusedRange());
    }
    int failed = 0;
    int end = answer.rangeChunks(0);
    while (end <= transfer.arrivedChunks() && failed < answer.ranges() - 1) {
      end += answer.rangeChunks(++failed);
    }
    return failed;
  }
}
