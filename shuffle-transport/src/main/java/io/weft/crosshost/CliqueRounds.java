package io.weft.crosshost;

import io.weft.collectives.fault.CollectiveException;
import io.weft.collectives.fault.CollectiveException.Kind;
import io.weft.crosshost.wire.Manifest;
import io.weft.crosshost.wire.ManifestEntry;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The rounds of one end of a clique with its peer: both say what they offer, then what both have
 * offered moves. For the lane's thread.
 */
final class CliqueRounds {
  private static final Logger LOG = LoggerFactory.getLogger(CliqueRounds.class);

  private final String name;
  private final CliqueLink link;
  private final TransferQueue queue;
  private final TransferCounters counters;
  private final GroupMoves moves;
  private final Agreement agreement = new Agreement();
  private final Confirmation confirmation;

  /** What devices have that may still wait for its sources. */
  private volatile List<PreparedTransfer> standing = List.of();

  /**
   * Rounds of what is in a queue.
   *
   * @param name of the clique, for the log
   * @param patience how long a source may take to end when its device has come behind it
   */
  CliqueRounds(
      String name,
      CliqueLink link,
      TransferQueue queue,
      TransferCounters counters,
      Duration patience) {
    this.name = name;
    this.link = link;
    this.queue = queue;
    this.counters = counters;
    this.moves = new GroupMoves(counters);
    this.confirmation = new Confirmation(link, patience);
  }

  /**
   * Whether there is something to offer. For other threads while the lane has nothing to do, which
   * they have heard of.
   */
  boolean hasReady() {
    return queue.hasReady(this::isReady);
  }

  private boolean isReady(PreparedTransfer transfer) {
    return transfer.isReady()
        || (transfer.isBehindDevice()
            && link.mayFollowDevices()
            && agreement.takesBehind(transfer.definition()));
  }

  /** Whether this end waits for something of the peer, or the peer for this one. */
  boolean isWaiting() {
    return agreement.isWaiting() || confirmation.isDue();
  }

  /** Whether both ends wait: nothing can happen until one of them offers more. */
  boolean isStuck() {
    return agreement.isStuck() && !confirmation.isDue();
  }

  /** What moves once its sources have come so far, which may be never; from any thread. */
  List<PreparedTransfer> standing() {
    return standing;
  }

  /**
   * One round.
   *
   * @param leaving whether this end would give its communicator up, where it has nothing to offer
   * @return whether anything was settled
   */
  boolean round(boolean leaving) {
    dropBrokenWire();
    long start = System.nanoTime();
    // Who has a verdict to give or to hear does not leave before.
    boolean leaves = leaving && !hasReady() && !confirmation.isDue();
    boolean reused = link.isOpen();
    if (leaves && !reused) {
      return true;
    }
    if (!reused) {
      open();
    }
    Manifest manifest = new Manifest();
    confirmation.own().ifPresent(verdict -> offerFirst(manifest, verdict));
    if (leaves) {
      offerFirst(manifest, ManifestEntry.IDLE);
    } else {
      offerTransfers(manifest, reused);
    }
    counters.increment(TransferCounter.MANIFESTS);
    boolean bothLeave = hear(link.wire().exchange(manifest)) && leaves;
    counters.add(TransferCounter.PEER_WAIT_NANOS, System.nanoTime() - start);
    if (bothLeave) {
      link.retire();
      counters.increment(TransferCounter.CLIQUES_RETIRED);
      return true;
    }
    return settle();
  }

  private void offerTransfers(Manifest manifest, boolean reused) {
    int said = manifest.entries().size();
    queue.takeReady(this::isReady, transfer -> offer(manifest, transfer));
    if (manifest.entries().size() > said) {
      counters.increment(TransferCounter.CLIQUE_REQUESTS);
      counters.add(TransferCounter.CLIQUE_REUSES, reused ? 1 : 0);
    }
  }

  private static void offerFirst(Manifest manifest, ManifestEntry entry) {
    if (!manifest.offer(entry)) {
      throw new IllegalStateException("an empty manifest has no room");
    }
  }

  /** Takes in what the peer offers; returns whether it would leave. */
  private boolean hear(List<ManifestEntry> entries) {
    boolean confirms = !entries.isEmpty() && entries.get(0).isVerdict();
    if (confirms != confirmation.isExpected()) {
      throw new IllegalArgumentException(
          confirms ? "a verdict on nothing that moved" : "no verdict on what moved before it was");
    }
    if (entries.equals(List.of(ManifestEntry.IDLE))) {
      return true;
    }
    confirm(confirms ? entries.get(0).failure() : "");
    agreement.heard(confirms ? entries.subList(1, entries.size()) : entries);
    return false;
  }

  /** Both ends have said what became of the sources that were recorded when they moved. */
  private void confirm(String theirs) {
    Agreement.Group group = confirmation.group();
    boolean sent = group.sourceFailure().isEmpty();
    counters.add(sent ? TransferCounter.SENT : TransferCounter.FAILED, group.sends().size());
    counters.add(
        theirs.isEmpty() ? TransferCounter.RECEIVED : TransferCounter.FAILED,
        group.receives().size());
    confirmation.settle(theirs);
    agreement.settled(group);
  }

  private boolean offer(Manifest manifest, PreparedTransfer transfer) {
    ManifestEntry entry = transfer.entry();
    boolean fits = manifest.offer(entry);
    if (fits) {
      agreement.offered(transfer, entry);
    }
    return fits;
  }

  /**
   * A wire that broke while nothing was under way is of no use, but no reason to fail either,
   * unless the peer is dead: nobody would come to meet anew.
   */
  private void dropBrokenWire() {
    Optional<RuntimeException> failure = link.failure();
    if (failure.isEmpty()) {
      return;
    }
    if (isWaiting()) {
      throw failure.get();
    }
    if (isDeath(failure.get())) {
      failReady(failure.get());
      throw failure.get();
    }
    LOG.info("{} meets anew: {}", name, failure.get().getMessage());
    int unused = agreement.fail(failure.get());
    link.letGo();
  }

  private static boolean isDeath(RuntimeException failure) {
    return failure instanceof CollectiveException known && known.kind() == Kind.DEAD;
  }

  /** What waited for it fails if there is no communicator to be had. */
  private void open() {
    try {
      link.open();
    } catch (RuntimeException e) {
      failReady(e);
      throw e;
    }
  }

  /** No lock is held: whoever hears of the failure may start others at once. */
  private void failReady(RuntimeException cause) {
    List<PreparedTransfer> ready = queue.takeReady(this::isReady);
    counters.add(TransferCounter.FAILED, ready.size());
    ready.forEach(transfer -> transfer.endBecause(cause));
  }

  private boolean settle() {
    Agreement.Matched matched = agreement.match();
    counters.add(
        TransferCounter.FAILED,
        matched.settled() - matched.complete().size() - matched.behind().size());
    if (!matched.complete().isEmpty()) {
      moves.move(link.wire(), matched.complete());
      agreement.moved(matched.complete());
    }
    if (!matched.behind().isEmpty()) {
      moveBehind(matched.behind());
    }
    return matched.settled() > 0;
  }

  /** Behind what is there already, which is not to wait for a source. */
  private void moveBehind(Agreement.Group group) {
    standing = Stream.concat(group.sends().stream(), group.receives().stream()).toList();
    try {
      moves.moveBehind(link.wire(), group);
    } finally {
      standing = List.of();
    }
    confirmation.begin(group);
  }

  /**
   * What both ends knew of each other is void, and both meet anew if need be.
   *
   * @param reason for both ends
   */
  void breakOff(RuntimeException cause, String reason) {
    LOG.info("{} breaks off: {}", name, cause.toString());
    confirmation.clear();
    link.abort(reason);
    // A wire may take long to close, and nobody is to wait for that.
    agreement.announce(cause);
    link.letGo();
    counters.add(TransferCounter.FAILED, agreement.fail(cause));
  }
}
