package io.weft.transfers;

import io.weft.collectives.TypedBuffer;
import io.weft.transfers.TransferCounter.TransferCounters;
import java.util.List;

/** Moves the payload of groups and counts it. Used by the lane's thread. */
final class GroupMoves {
  private final TransferCounters counters;

  GroupMoves(TransferCounters counters) {
    this.counters = counters;
  }

  /** Moves plain arrays, then encoded ones; encoding starts meanwhile. */
  void move(TransferWire wire, OfferMatcher.Group group) {
    CodedGroup coded = new CodedGroup(group.sends(), group.receives());
    List<TypedBuffer> sends = plain(group.sends());
    List<TypedBuffer> receives = plain(group.receives());
    coded.move(wire, sends, receives);
    counters.increment(TransferCounter.GROUPS);
    counters.add(TransferCounter.SENT, group.sends().size() - coded.failedSends());
    counters.add(TransferCounter.RECEIVED, group.receives().size() - coded.failedReceives());
    counters.add(TransferCounter.FAILED, coded.failedSends() + coded.failedReceives());
    counters.add(TransferCounter.BYTES_SENT, coded.sentBytes());
    counters.add(TransferCounter.BYTES_RECEIVED, coded.receivedBytes());
  }

  /**
   * As {@link #move}, for plain arrays behind device work: the devices enqueue the move at once.
   * Success is not known yet, so it is not counted here.
   */
  void moveBehind(TransferWire wire, OfferMatcher.Group group) {
    counters.increment(TransferCounter.GROUPS_BEHIND_DEVICES);
    List<TypedBuffer> sends = plain(group.sends());
    List<TypedBuffer> receives = plain(group.receives());
    wire.moveBehind(group.sources(), sends, receives);
    counters.increment(TransferCounter.GROUPS);
    counters.add(TransferCounter.BYTES_SENT, bytes(sends));
    counters.add(TransferCounter.BYTES_RECEIVED, bytes(receives));
  }

  private static long bytes(List<TypedBuffer> buffers) {
    return buffers.stream().mapToLong(TypedBuffer::bytes).sum();
  }

  private static List<TypedBuffer> plain(List<PreparedTransfer> transfers) {
    return transfers.stream()
        .filter(transfer -> transfer.coding().isPlain())
        .map(PreparedTransfer::buffer)
        .toList();
  }
}
