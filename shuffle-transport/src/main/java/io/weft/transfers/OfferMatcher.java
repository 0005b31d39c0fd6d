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
 * of the other. Both ends first confirm their offers, see {@link #mayMatch}, and hold the same
 * lists. So both reach the same result: the payload moves, or the transfer fails at both ends.
 *
 * <p>A failed offer fails the peer's offer of the same key. It is skipped if the peer offers
 * another key, or if its end offers this key again as its next one: a task runs again, and its
 * transfers must not match those of its first attempt. For the same reason an offer is skipped if
 * the peer offers a transfer of a later attempt of the same work.
 *
 * <p>A withdrawn offer of an attempt is a failed one whose end may offer the key again later. The
 * peer's offer of the same key waits for the next offer of that end, which decides. Without an
 * attempt the key does not come again, and the peer's offer fails.
 *
 * <p>Used by one thread, the thread of the clique's lane.
 */
final class OfferMatcher {
  /** An offer of one end, with the entry that both ends know. */
  private static final class Offer {
    /** Null for an offer of the peer. May have failed since both ends know the entry. */
    private final PreparedTransfer transfer;

    private final long number;
    private ManifestEntry entry;
    private boolean withdrawn;

    private Offer(PreparedTransfer transfer, long number, ManifestEntry entry) {
      this.transfer = transfer;
      this.number = number;
      this.entry = entry;
    }

    private void withdraw(String reason) {
      entry = entry.withFailure(reason);
      withdrawn = true;
    }
  }

  /** The unmatched offers of one end in one direction, numbered from 0 on each communicator. */
  private static final class OfferQueue {
    private final Deque<Offer> offers = new ArrayDeque<>();
    private long next;

    void add(PreparedTransfer transfer, ManifestEntry entry) {
      offers.add(new Offer(transfer, next++, entry));
    }

    ManifestEntry first() {
      return offers.element().entry;
    }

    /** Whether an offer waits for the other end. A failed one does not. */
    boolean isWaiting() {
      return offers.stream().anyMatch(offer -> !offer.entry.hasFailed());
    }

    /** The key of the first offer behind the first one that is not withdrawn. */
    Optional<Long> nextKey() {
      return offers.stream()
          .skip(1)
          .filter(offer -> !offer.withdrawn)
          .findFirst()
          .map(offer -> offer.entry.key());
    }

    void clear() {
      offers.clear();
      next = 0;
    }
  }

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

  private final OfferQueue mySends = new OfferQueue();
  private final OfferQueue myReceives = new OfferQueue();
  private final OfferQueue theirSends = new OfferQueue();
  private final OfferQueue theirReceives = new OfferQueue();
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

  /** Adds an offer that the peer gets, unless the manifest is full. Returns whether it did. */
  boolean offerInto(Manifest manifest, PreparedTransfer transfer) {
    ManifestEntry entry = transfer.entry();
    if (!transfer.isGivenUp()) {
      boolean fits = manifest.offer(entry);
      if (fits) {
        offered(transfer, entry);
      }
      return fits;
    }
    // The peer learns of the offer and of its withdrawal at once.
    OfferQueue mine = transfer.sends() ? mySends : myReceives;
    ManifestEntry offer = entry.withFailure("");
    String reason = transfer.failureText();
    boolean fits = manifest.offer(offer, ManifestEntry.withdrawal(offer, mine.next, reason));
    if (fits) {
      offered(transfer, offer);
      mine.offers.getLast().withdraw(reason);
    }
    return fits;
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
    (transfer.sends() ? mySends : myReceives).add(transfer, entry);
  }

  /** Withdraws the offers that were given up since, unless the manifest is full. */
  void withdrawInto(Manifest manifest) {
    for (OfferQueue mine : List.of(mySends, myReceives)) {
      for (Offer offer : mine.offers) {
        if (offer.withdrawn || !offer.transfer.isGivenUp()) {
          continue;
        }
        String reason = offer.transfer.failureText();
        if (!manifest.offer(ManifestEntry.withdrawal(offer.entry, offer.number, reason))) {
          return;
        }
        leaveSource(offer);
        offer.withdraw(reason);
      }
    }
  }

  /** The offers that were given up since, as many as a manifest takes. Ends their transfers. */
  Manifest withdrawals() {
    Manifest manifest = new Manifest();
    withdrawInto(manifest);
    endFailed();
    return manifest;
  }

  /** Ends the transfers whose offers have failed: their payload never moves. */
  void endFailed() {
    for (OfferQueue mine : List.of(mySends, myReceives)) {
      for (Offer offer : List.copyOf(mine.offers)) {
        if (offer.entry.hasFailed()) {
          endFailed(offer.transfer, offer.entry);
        }
      }
    }
  }

  /**
   * Marks the offers that the peer withdraws, see {@link #withdrawals}.
   *
   * @throws IllegalArgumentException if an entry withdraws no offer
   */
  void addPeerWithdrawals(List<ManifestEntry> entries) {
    if (!entries.stream().allMatch(ManifestEntry::isWithdrawal)) {
      throw new IllegalArgumentException("the peer has sent offers instead of its confirmation");
    }
    addPeerOffers(entries);
  }

  /**
   * Adds offers of the peer and marks those that it withdraws.
   *
   * @throws IllegalArgumentException if the peer withdraws an offer that is not there
   */
  void addPeerOffers(List<ManifestEntry> entries) {
    for (ManifestEntry entry : entries) {
      OfferQueue theirs = entry.send() ? theirSends : theirReceives;
      if (entry.isWithdrawal()) {
        markWithdrawn(theirs, entry);
      } else {
        theirs.add(null, entry);
      }
    }
  }

  private static void markWithdrawn(OfferQueue theirs, ManifestEntry withdrawal) {
    Offer offered =
        theirs.offers.stream()
            .filter(offer -> offer.number == withdrawal.count())
            .findFirst()
            .orElseThrow(
                () ->
                    new IllegalArgumentException(
                        "the peer withdraws its offer %d, which does not wait"
                            .formatted(withdrawal.count())));
    offered.withdraw(withdrawal.failure());
  }

  /** Whether this end waits for an offer of the peer. */
  boolean isWaiting() {
    return mySends.isWaiting() || myReceives.isWaiting();
  }

  /** Whether both ends wait: nothing can happen until one of them offers more. */
  boolean isStuck() {
    return isWaiting() && (theirSends.isWaiting() || theirReceives.isWaiting());
  }

  /**
   * Whether offers of both ends may match. Then both exchange their {@link #withdrawals} until
   * neither has one, so that no transfer matches that was withdrawn before the other end started.
   */
  boolean mayMatch() {
    return (mySends.isWaiting() && theirReceives.isWaiting())
        || (myReceives.isWaiting() && theirSends.isWaiting());
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

  private int match(OfferQueue mine, OfferQueue theirs, Group complete, Group late) {
    int settled = 0;
    while (!mine.offers.isEmpty() && !theirs.offers.isEmpty()) {
      if (skips(mine, theirs)) {
        skip(remove(mine), theirs.first());
        settled++;
      } else if (skips(theirs, mine)) {
        Offer unused = theirs.offers.remove();
      } else if (isUndecided(mine, theirs) || isUndecided(theirs, mine)) {
        return settled;
      } else {
        Offer own = remove(mine);
        ManifestEntry entry = theirs.offers.remove().entry;
        settle(own, entry, own.entry.recorded() || entry.recorded() ? late : complete);
        settled++;
      }
    }
    return settled;
  }

  /** Whether the first offer of one end has no counterpart. True for one of two ends at most. */
  private static boolean skips(OfferQueue one, OfferQueue other) {
    return isOlder(one, other) || (!isOlder(other, one) && isAlone(one, other));
  }

  private Offer remove(OfferQueue mine) {
    Offer offer = mine.offers.remove();
    leaveSource(offer);
    return offer;
  }

  /** The offer does not wait for its recorded source any more. */
  private void leaveSource(Offer offer) {
    if (offer.entry.recorded() && --sendsBehind == 0) {
      behind = null;
    }
  }

  /** Ends with the source's own failure if there is one, else with the text that the peer got. */
  private static void endFailed(PreparedTransfer transfer, ManifestEntry entry) {
    transfer.end(
        transfer.definition().failure().orElseGet(() -> new TransferException(entry.failure())));
  }

  /** Whether the first offer is of an earlier attempt than the other end's first one. */
  private static boolean isOlder(OfferQueue one, OfferQueue other) {
    return one.first().attempt().isBefore(other.first().attempt());
  }

  /** Whether the first offer has failed and the other end's first one waits for another offer. */
  private static boolean isAlone(OfferQueue one, OfferQueue other) {
    ManifestEntry failed = one.first();
    ManifestEntry waiting = other.first();
    return failed.hasFailed()
        && !waiting.hasFailed()
        && (failed.key() != waiting.key()
            || one.nextKey().filter(key -> key == waiting.key()).isPresent());
  }

  /** Whether the first offer is withdrawn, and its work has not offered the next one. */
  private static boolean isUndecided(OfferQueue one, OfferQueue other) {
    return one.offers.element().withdrawn
        && one.first().attempt().work() >= 0
        && !other.first().hasFailed()
        && one.nextKey().isEmpty();
  }

  /** Ends an offer of this end without a counterpart. A failed one has ended before. */
  private static void skip(Offer mine, ManifestEntry theirs) {
    PreparedTransfer transfer = mine.transfer;
    if (!mine.entry.hasFailed()) {
      transfer.end(
          new TransferException(
              "%s belongs to %s, and %s is in %s"
                  .formatted(
                      transfer.event().what(),
                      mine.entry.attempt(),
                      transfer.peer(),
                      theirs.attempt())));
    }
  }

  private void settle(Offer mine, ManifestEntry theirs, Group group) {
    PreparedTransfer transfer = mine.transfer;
    if (mine.entry.hasFailed()) {
      // It ended when the peer learned of it.
      return;
    }
    if (!mine.entry.matches(theirs)) {
      transfer.end(new TransferException(mismatch(transfer, mine.entry, theirs)));
    } else if (theirs.hasFailed()) {
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
  private static String mismatch(
      PreparedTransfer transfer, ManifestEntry mine, ManifestEntry theirs) {
    return transfer.sends()
        ? mismatch(transfer.local(), mine, transfer.peer(), theirs)
        : mismatch(transfer.peer(), theirs, transfer.local(), mine);
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
    mySends.offers.forEach(offer -> all.add(offer.transfer));
    myReceives.offers.forEach(offer -> all.add(offer.transfer));
    return all;
  }

  /** Fails all events. The wire may use the buffers until {@link #fail}. */
  void announce(Throwable cause) {
    all().forEach(transfer -> transfer.failBecause(cause));
  }

  /** Ends all transfers and forgets the peer's offers. Returns the number of ended transfers. */
  int fail(Throwable cause) {
    List<PreparedTransfer> all = all();
    int ended = clear();
    all.forEach(transfer -> transfer.endBecause(cause));
    return ended;
  }

  /** Forgets all offers. Returns the number of this end's transfers. */
  int clear() {
    int mine = all().size();
    moving.clear();
    List.of(mySends, myReceives, theirSends, theirReceives).forEach(OfferQueue::clear);
    behind = null;
    sendsBehind = 0;
    return mine;
  }
}
