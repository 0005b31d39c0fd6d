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
 * The rounds of one end of a clique with its peer. In a round both ends exchange offers, then the
 * matched transfers move. Used by the lane's thread.
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

  /** Transfers that devices have and that may still wait for their sources. */
  private volatile List<PreparedTransfer> standing = List.of();

  /**
   * Creates the rounds for a queue.
   *
   * @param name of the clique, for the log
   * @param timeout the longest wait for the end of a source after its group has moved
   */
  CliqueRounds(
      String name,
      CliqueLink link,
      TransferQueue queue,
      TransferCounters counters,
      Duration timeout) {
    this.name = name;
    this.link = link;
    this.queue = queue;
    this.counters = counters;
    this.moves = new GroupMoves(counters);
    this.confirmation = new Confirmation(link, timeout);
  }

  /**
   * Whether a transfer can be offered. Other threads may call this only while the lane is idle,
   * which they learn under the channel's lock.
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

  /** Whether one of the ends waits for the other. */
  boolean isWaiting() {
    return agreement.isWaiting() || confirmation.isDue();
  }

  /** Whether both ends wait: nothing can happen until one of them offers more. */
  boolean isStuck() {
    return agreement.isStuck() && !confirmation.isDue();
  }

  /** The transfers that move once their sources end, which may be never. Thread-safe. */
  List<PreparedTransfer> standing() {
    return standing;
  }

  /**
   * Runs one round.
   *
   * @param leaving whether to give up the communicator if this end has nothing to offer
   * @return whether a transfer was settled
   */
  boolean round(boolean leaving) {
    dropBrokenWire();
    long start = System.nanoTime();
    // An end that owes or expects a verdict stays.
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
    boolean bothLeave = takeOffers(link.wire().exchange(manifest)) && leaves;
    counters.add(TransferCounter.PEER_WAIT_NANOS, System.nanoTime() - start);
    if (bothLeave) {
      link.retire();
      counters.increment(TransferCounter.CLIQUES_RETIRED);
      return true;
    }
    return settle();
  }

  private void offerTransfers(Manifest manifest, boolean reused) {
    int before = manifest.entries().size();
    queue.takeReady(this::isReady, transfer -> offer(manifest, transfer));
    if (manifest.entries().size() > before) {
      counters.increment(TransferCounter.CLIQUE_REQUESTS);
      counters.add(TransferCounter.CLIQUE_REUSES, reused ? 1 : 0);
    }
  }

  private static void offerFirst(Manifest manifest, ManifestEntry entry) {
    if (!manifest.offer(entry)) {
      throw new IllegalStateException("an empty manifest has no room");
    }
  }

  /** Takes the peer's offers. Returns whether the peer wants to give up the communicator. */
  private boolean takeOffers(List<ManifestEntry> entries) {
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

  /** Ends the transfers that moved behind recorded sources, by the verdicts of both ends. */
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
   * Drops a wire that broke between rounds. No transfer fails for that, unless the peer is dead:
   * then it cannot come to a new rendezvous.
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
    LOG.info("{} opens a new communicator: {}", name, failure.get().getMessage());
    int unused = agreement.fail(failure.get());
    link.closeCommunicator();
  }

  private static boolean isDeath(RuntimeException failure) {
    return failure instanceof CollectiveException known && known.kind() == Kind.DEAD;
  }

  /** Opens the link. The waiting transfers fail if that fails. */
  private void open() {
    try {
      link.open();
    } catch (RuntimeException e) {
      failReady(e);
      throw e;
    }
  }

  /** Fails the ready transfers, without a lock: a listener may start new transfers at once. */
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

  /** Enqueues a group behind the complete one, which must not wait for a source. */
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
   * Drops the state of both ends. The next round opens a new communicator.
   *
   * @param reason for the messages at both ends
   */
  void breakOff(RuntimeException cause, String reason) {
    LOG.info("{} breaks off: {}", name, cause.toString());
    confirmation.clear();
    link.abort(reason);
    // Waiters learn of the failure first: a wire may take long to close.
    agreement.announce(cause);
    link.closeCommunicator();
    counters.add(TransferCounter.FAILED, agreement.fail(cause));
  }
}
