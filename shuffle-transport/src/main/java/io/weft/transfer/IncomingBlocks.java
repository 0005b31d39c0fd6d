package io.weft.transfer;

import io.weft.wire.BlocksOpened;

/**
 * A transfer as its reader sees it: which of its chunks were delivered and whether their memory is
 * still in use. For the reader's thread, but for the signal.
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
   * Takes the transfer over.
   *
   * @param signal raised while it waits in the reader's queue of events
   */
  IncomingBlocks(BlockTransfer transfer, Signal signal) {
    this.transfer = transfer;
    this.signal = signal;
  }

  BlockTransfer transfer() {
    return transfer;
  }

  /** To be called before looking for news: what comes later signals again. */
  void clearSignal() {
    signal.clear();
  }

  /** True once only, when the answer is there. */
  boolean takeAnnouncement() {
    boolean first = !announced && transfer.answer() != null;
    announced |= first;
    return first;
  }

  /** It failed, and another transfer brings what has not arrived of it. */
  void breakOff() {
    broken = true;
  }

  boolean isBroken() {
    return broken;
  }

  /** Moves to the next chunk that has arrived, if there is one. */
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

  /** Whether every chunk that will ever arrive was delivered. */
  boolean isDelivered() {
    boolean known = announced || transfer.answer() == null;
    return known && transfer.isEnded() && delivered == transfer.arrivedChunks();
  }

  /** One chunk more is being read by the task. */
  void use() {
    inUse++;
  }

  /** One chunk less is being read; true if the memory is not needed any more. */
  boolean unuse() {
    inUse--;
    return isUnused();
  }

  boolean isUnused() {
    return inUse == 0 && isDelivered();
  }

  /** The request that is to be named when the transfer has failed. */
  BlockRequest failedRequest() {
    return transfer.plan().requests().get(failedRange());
  }

  /** First partition of the failed request that did not arrive. */
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
