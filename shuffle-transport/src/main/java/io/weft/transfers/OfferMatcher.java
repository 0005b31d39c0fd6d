package io.weft.transfers;

import io.weft.device.Event;
import io.weft.transfers.Manifest.ManifestEntry;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;

/**
 * Matches the offers of the two ends of a clique. The n-th send of one end matches the n-th receive
 * of the other. Both ends hold the same lists, so both reach the same result without another
 * message: the payload moves, or the transfer fails at both ends.
 *
 * <p>An offer that had already failed when it was sent is skipped if the other end offers another
 * key. The other end never started that transfer, for example because its task was ended and runs
 * again. Later transfers must not match such an offer.
 *
 * <p>Used by one thread, the thread of the clique's lane.
 */
final class OfferMatcher {
  /** A transfer and the entry that the peer got. The transfer may have failed since. */
  private record Offer(PreparedTransfer transfer, ManifestEntry entry) {}

  /** Transfers that move as one group. */
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

    /** The source events of the sends. */
    List<Event> sources() {
      return sends.stream().map(PreparedTransfer::definition).distinct().toList();
    }

    /** The failure of a source; empty if no source has failed. The payload is void if one has. */
    Optional<Throwable> sourceFailure() {
      return sources().stream().flatMap(source -> source.failure().stream()).findFirst();
    }

    private void add(PreparedTransfer transfer) {
      (transfer.sends() ? sends : receives).add(transfer);
    }
  }

  /**
   * The result of a match.
   *
   * @param complete moves first: its sources have ended
   * @param behind moves second: devices still work on its sources
   * @param settled the number of transfers in both groups and of those that failed
   */
  record Matched(Group complete, Group behind, int settled) {}

  private final Deque<Offer> mySends = new ArrayDeque<>();
  private final Deque<Offer> myReceives = new ArrayDeque<>();
  private final Deque<ManifestEntry> theirSends = new ArrayDeque<>();
  private final Deque<ManifestEntry> theirReceives = new ArrayDeque<>();
  private final Set<PreparedTransfer> moving = new LinkedHashSet<>();

  /** The device work that offered sends wait for, and the number of these sends. */
  private Event behind;

  private int sendsBehind;

  /**
   * Whether a send with this recorded source may be offered. Only one source is allowed at a time:
   * a send must wait for its own source only, and must fail only if its own source fails.
   */
  boolean takesBehind(Event source) {
    return behind == null || behind == source;
  }

  /**
   * Adds an offer that the peer gets.
   *
   * @throws IllegalStateException when its source is recorded and {@link #takesBehind} is false
   */
  void offered(PreparedTransfer transfer, ManifestEntry entry) {
    if (entry.recorded() && !takesBehind(transfer.definition())) {
      throw new IllegalStateException(
          transfer + " cannot be offered while others wait for " + behind);
    }
    transfer.setStage(PreparedTransfer.Stage.OFFERED);
    if (entry.recorded()) {
      behind = transfer.definition();
      sendsBehind++;
    }
    (transfer.sends() ? mySends : myReceives).add(new Offer(transfer, entry));
  }

  void addPeerOffers(List<ManifestEntry> entries) {
    entries.forEach(entry -> (entry.send() ? theirSends : theirReceives).add(entry));
  }

  /** Whether this end waits for an offer of the peer. */
  boolean isWaiting() {
    return !mySends.isEmpty() || !myReceives.isEmpty();
  }

  /** Whether both ends wait: nothing can happen until one of them offers more. */
  boolean isStuck() {
    return isWaiting() && !(theirSends.isEmpty() && theirReceives.isEmpty());
  }

  /** Matches the offers of both ends. Matched transfers count as moving until {@link #moved}. */
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
      if (isAlone(mine.peek().entry(), theirs.peek())) {
        endFailed(remove(mine));
        settled++;
      } else if (isAlone(theirs.peek(), mine.peek().entry())) {
        ManifestEntry unused = theirs.remove();
      } else {
        Offer own = remove(mine);
        ManifestEntry entry = theirs.remove();
        settle(own, entry, own.entry().recorded() || entry.recorded() ? late : complete);
        settled++;
      }
    }
    return settled;
  }

  private Offer remove(Deque<Offer> offers) {
    Offer offer = offers.remove();
    if (offer.entry().recorded() && --sendsBehind == 0) {
      behind = null;
    }
    return offer;
  }

  /** Ends with the source's own failure if there is one, else with the text that the peer got. */
  private static void endFailed(Offer failed) {
    PreparedTransfer transfer = failed.transfer();
    transfer.end(
        transfer
            .definition()
            .failure()
            .orElseGet(() -> new TransferException(failed.entry().failure())));
  }

  private static boolean isAlone(ManifestEntry one, ManifestEntry other) {
    return !one.failure().isEmpty() && other.failure().isEmpty() && one.key() != other.key();
  }

  private void settle(Offer mine, ManifestEntry theirs, Group group) {
    PreparedTransfer transfer = mine.transfer();
    if (!mine.entry().matches(theirs)) {
      transfer.end(new TransferException(mismatch(transfer, theirs)));
    } else if (!mine.entry().failure().isEmpty()) {
      endFailed(mine);
    } else if (!theirs.failure().isEmpty()) {
      transfer.end(failedAtPeer(transfer, theirs.failure()));
    } else {
      transfer.setStage(PreparedTransfer.Stage.MOVING);
      moving.add(transfer);
      group.add(transfer);
    }
  }

  /** The failure of a transfer that failed at the other end. */
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

  /** Completes a group whose payload has moved. */
  void moved(Group group) {
    group.sends().forEach(PreparedTransfer::complete);
    group.receives().forEach(PreparedTransfer::complete);
    settled(group);
  }

  /** Forgets the transfers of a group that have ended. */
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

  /** Fails all events. The wire may use the buffers until {@link #fail}. */
  void announce(Throwable cause) {
    all().forEach(transfer -> transfer.failBecause(cause));
  }

  /** Ends all transfers and forgets the peer's offers. Returns the number of ended transfers. */
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
