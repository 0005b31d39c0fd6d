package io.weft.crosshost;

import io.weft.crosshost.wire.ManifestEntry;
import io.weft.device.Event;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;

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

  /** What is to move as one group. */
  record Group(List<PreparedTransfer> sends, List<PreparedTransfer> receives) {
    static final Group NONE = new Group(List.of(), List.of());

    static Group empty() {
      return new Group(new ArrayList<>(), new ArrayList<>());
    }

    boolean isEmpty() {
      return sends.isEmpty() && receives.isEmpty();
    }

    int size() {
      return sends.size() + receives.size();
    }

    /** What the sends of a group behind devices wait for. */
    List<Event> sources() {
      return sends.stream().map(PreparedTransfer::definition).distinct().toList();
    }

    /** Why what has moved behind devices is not good; empty if nothing has failed. */
    Optional<Throwable> sourceFailure() {
      return sources().stream().flatMap(source -> source.failure().stream()).findFirst();
    }

    private void add(PreparedTransfer transfer) {
      (transfer.sends() ? sends : receives).add(transfer);
    }
  }

  /**
   * What came of the offers of both ends.
   *
   * @param complete moves first: its sources have ended
   * @param behind moves then: devices still work on its sources
   * @param settled transfers that are done with, those of the groups and those that failed
   */
  record Matched(Group complete, Group behind, int settled) {}

  private final Deque<Offer> mySends = new ArrayDeque<>();
  private final Deque<Offer> myReceives = new ArrayDeque<>();
  private final Deque<ManifestEntry> theirSends = new ArrayDeque<>();
  private final Deque<ManifestEntry> theirReceives = new ArrayDeque<>();
  private final Set<PreparedTransfer> moving = new LinkedHashSet<>();

  /** What offered sends still wait for on a device, and how many. */
  private Event behind;

  private int sendsBehind;

  /**
   * Whether a send may be offered whose source is recorded. One source at a time: what waits for
   * one is not to wait for the next as well, and a source that fails fails no more than its own.
   */
  boolean takesBehind(Event source) {
    return behind == null || behind == source;
  }

  /**
   * The peer is told of it.
   *
   * @throws IllegalStateException when its source is recorded and {@link #takesBehind} is false
   */
  void offered(PreparedTransfer transfer, ManifestEntry told) {
    if (told.recorded() && !takesBehind(transfer.definition())) {
      throw new IllegalStateException(
          transfer + " cannot be offered while others wait for " + behind);
    }
    transfer.advance(PreparedTransfer.Stage.OFFERED);
    if (told.recorded()) {
      behind = transfer.definition();
      sendsBehind++;
    }
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
  Matched match() {
    Group complete = Group.empty();
    Group late = Group.empty();
    int settled =
        match(mySends, theirReceives, complete, late)
            + match(myReceives, theirSends, complete, late);
    return new Matched(complete, late, settled);
  }

  private int match(Deque<Offer> mine, Deque<ManifestEntry> theirs, Group complete, Group late) {
    int settled = 0;
    while (!mine.isEmpty() && !theirs.isEmpty()) {
      if (isAlone(mine.peek().told(), theirs.peek())) {
        endFailed(remove(mine));
        settled++;
      } else if (isAlone(theirs.peek(), mine.peek().told())) {
        ManifestEntry unused = theirs.remove();
      } else {
        Offer own = remove(mine);
        ManifestEntry told = theirs.remove();
        settle(own, told, own.told().recorded() || told.recorded() ? late : complete);
        settled++;
      }
    }
    return settled;
  }

  private Offer remove(Deque<Offer> offers) {
    Offer offer = offers.remove();
    if (offer.told().recorded() && --sendsBehind == 0) {
      behind = null;
    }
    return offer;
  }

  /** With the failure itself where it is the source's, not with what the peer was told of it. */
  private static void endFailed(Offer failed) {
    PreparedTransfer transfer = failed.transfer();
    transfer.end(
        transfer
            .definition()
            .failure()
            .orElseGet(() -> new TransferException(failed.told().failure())));
  }

  private static boolean isAlone(ManifestEntry one, ManifestEntry other) {
    return !one.failure().isEmpty() && other.failure().isEmpty() && one.key() != other.key();
  }

  private void settle(Offer mine, ManifestEntry theirs, Group group) {
    PreparedTransfer transfer = mine.transfer();
    if (!mine.told().matches(theirs)) {
      transfer.end(new TransferException(mismatch(transfer, theirs)));
    } else if (!mine.told().failure().isEmpty()) {
      endFailed(mine);
    } else if (!theirs.failure().isEmpty()) {
      transfer.end(failedAtPeer(transfer, theirs.failure()));
    } else {
      transfer.advance(PreparedTransfer.Stage.MOVING);
      moving.add(transfer);
      group.add(transfer);
    }
  }

  /** What a transfer ends with that failed at the other end. */
  static TransferException failedAtPeer(PreparedTransfer transfer, String failure) {
    return new TransferException(
        "%s failed at %s: %s".formatted(transfer.event().what(), transfer.peer(), failure));
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

  /** A group has moved, and is good. */
  void moved(Group group) {
    group.sends().forEach(PreparedTransfer::complete);
    group.receives().forEach(PreparedTransfer::complete);
    settled(group);
  }

  /** The transfers of a group have ended. */
  void settled(Group group) {
    group.sends().forEach(moving::remove);
    group.receives().forEach(moving::remove);
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
    behind = null;
    sendsBehind = 0;
    all.forEach(transfer -> transfer.endBecause(cause));
    return all.size();
  }
}
