package io.weft.crosshost;

import io.weft.crosshost.wire.ManifestEntry;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;

/**
 * What the two ends of a clique have told each other and not settled yet. The n-th send of one end
 * meets the n-th receive of the other. Both ends hold the same lists, so both come to the same
 * conclusion without another word: the payload moves, or the transfer fails on both.
 *
 * <p>Who had failed when the peer was told of it, and meets another key, is left out: the other end
 * never came so far, as where a task was ended and runs again, and later transfers must not meet
 * what is left of it.
 *
 * <p>One thread, that of the clique's lane.
 */
final class Agreement {
  /** A transfer and what the peer was told of it; it may have failed since. */
  private record Offer(PreparedTransfer transfer, ManifestEntry told) {}

  /**
   * What is to move as one group.
   *
   * @param settled transfers that are done with, those of the group and those that failed
   */
  record Group(List<PreparedTransfer> sends, List<PreparedTransfer> receives, int settled) {
    boolean isEmpty() {
      return sends.isEmpty() && receives.isEmpty();
    }
  }

  private final Deque<Offer> mySends = new ArrayDeque<>();
  private final Deque<Offer> myReceives = new ArrayDeque<>();
  private final Deque<ManifestEntry> theirSends = new ArrayDeque<>();
  private final Deque<ManifestEntry> theirReceives = new ArrayDeque<>();
  private final List<PreparedTransfer> moving = new ArrayList<>();

  void offered(PreparedTransfer transfer, ManifestEntry told) {
    transfer.advance(PreparedTransfer.Stage.OFFERED);
    (transfer.sends() ? mySends : myReceives).add(new Offer(transfer, told));
  }

  void heard(List<ManifestEntry> entries) {
    entries.forEach(entry -> (entry.send() ? theirSends : theirReceives).add(entry));
  }

  /** Whether this end waits for something of the peer. */
  boolean isWaiting() {
    return !mySends.isEmpty() || !myReceives.isEmpty();
  }

  /** Whether both ends wait: nothing can happen until one of them offers more. */
  boolean isStuck() {
    return isWaiting() && !(theirSends.isEmpty() && theirReceives.isEmpty());
  }

  /**
   * Settles what both ends have offered. What is to move counts as under way until {@link #moved}.
   */
  Group match() {
    List<PreparedTransfer> sends = new ArrayList<>();
    List<PreparedTransfer> receives = new ArrayList<>();
    int settled = match(mySends, theirReceives, sends) + match(myReceives, theirSends, receives);
    moving.addAll(sends);
    moving.addAll(receives);
    return new Group(sends, receives, settled);
  }

  private static int match(
      Deque<Offer> mine, Deque<ManifestEntry> theirs, List<PreparedTransfer> group) {
    int settled = 0;
    while (!mine.isEmpty() && !theirs.isEmpty()) {
      if (isAlone(mine.peek().told(), theirs.peek())) {
        Offer failed = mine.remove();
        failed.transfer().end(new TransferException(failed.told().failure()));
        settled++;
      } else if (isAlone(theirs.peek(), mine.peek().told())) {
        ManifestEntry unused = theirs.remove();
      } else {
        settle(mine.remove(), theirs.remove(), group);
        settled++;
      }
    }
    return settled;
  }

  private static boolean isAlone(ManifestEntry one, ManifestEntry other) {
    return !one.failure().isEmpty() && other.failure().isEmpty() && one.key() != other.key();
  }

  private static void settle(Offer mine, ManifestEntry theirs, List<PreparedTransfer> group) {
    PreparedTransfer transfer = mine.transfer();
    if (!mine.told().matches(theirs)) {
      transfer.end(new TransferException(mismatch(transfer, theirs)));
    } else if (!mine.told().failure().isEmpty()) {
      transfer.end(new TransferException(mine.told().failure()));
    } else if (!theirs.failure().isEmpty()) {
      transfer.end(
          new TransferException(
              "%s failed at %s: %s"
                  .formatted(transfer.event().what(), transfer.peer(), theirs.failure())));
    } else {
      transfer.advance(PreparedTransfer.Stage.MOVING);
      group.add(transfer);
    }
  }

  /** The same text on both ends. */
  private static String mismatch(PreparedTransfer mine, ManifestEntry theirs) {
    return mine.sends()
        ? mismatch(mine.local(), mine.entry(), mine.peer(), theirs)
        : mismatch(mine.peer(), theirs, mine.local(), mine.entry());
  }

  private static String mismatch(
      DeviceId sender, ManifestEntry sent, DeviceId receiver, ManifestEntry received) {
    return "%s sends %s but %s receives %s: transfers between two devices match in their order"
        .formatted(sender, sent, receiver, received);
  }

  /** What was to move has moved. */
  void moved() {
    moving.forEach(PreparedTransfer::complete);
    moving.clear();
  }

  private List<PreparedTransfer> all() {
    List<PreparedTransfer> all = new ArrayList<>(moving);
    mySends.forEach(offer -> all.add(offer.transfer()));
    myReceives.forEach(offer -> all.add(offer.transfer()));
    return all;
  }

  /** Tells who waits that it failed; the wire may still use the buffers until {@link #fail}. */
  void announce(Throwable cause) {
    all().forEach(transfer -> transfer.failBecause(cause));
  }

  /** Ends everything of this end and forgets the peer's; returns how many did not end well. */
  int fail(Throwable cause) {
    List<PreparedTransfer> all = all();
    moving.clear();
    mySends.clear();
    myReceives.clear();
    theirSends.clear();
    theirReceives.clear();
    all.forEach(transfer -> transfer.endBecause(cause));
    return all.size();
  }
}
