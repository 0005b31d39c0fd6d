package io.weft.crosshost;

import io.weft.collectives.fault.CollectiveException;
import io.weft.collectives.fault.CollectiveException.Kind;
import io.weft.crosshost.wire.Manifest;
import io.weft.crosshost.wire.ManifestEntry;
import java.util.List;
import java.util.Optional;
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

  /**
   * Rounds of what is in a queue.
   *
   * @param name of the clique, for the log
   */
  CliqueRounds(String name, CliqueLink link, TransferQueue queue, TransferCounters counters) {
    this.name = name;
    this.link = link;
    this.queue = queue;
    this.counters = counters;
    this.moves = new GroupMoves(counters);
  }

  /** Whether this end waits for something of the peer. */
  boolean isWaiting() {
    return agreement.isWaiting();
  }

  /** Whether both ends wait: nothing can happen until one of them offers more. */
  boolean isStuck() {
    return agreement.isStuck();
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
    boolean leaves = leaving && !queue.hasReady();
    boolean reused = link.isOpen();
    if (leaves && !reused) {
      return true;
    }
    if (!reused) {
      open();
    }
    Manifest manifest = new Manifest();
    if (leaves) {
      offerToLeave(manifest);
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
    queue.takeReady(transfer -> offer(manifest, transfer));
    if (!manifest.entries().isEmpty()) {
      counters.increment(TransferCounter.CLIQUE_REQUESTS);
      counters.add(TransferCounter.CLIQUE_REUSES, reused ? 1 : 0);
    }
  }

  private static void offerToLeave(Manifest manifest) {
    if (!manifest.offer(ManifestEntry.IDLE)) {
      throw new IllegalStateException("an empty manifest has no room");
    }
  }

  /** Takes in what the peer offers; returns whether it would leave. */
  private boolean hear(List<ManifestEntry> entries) {
    if (entries.equals(List.of(ManifestEntry.IDLE))) {
      return true;
    }
    agreement.heard(entries);
    return false;
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
    if (agreement.isWaiting()) {
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
    List<PreparedTransfer> ready = queue.takeReady();
    counters.add(TransferCounter.FAILED, ready.size());
    ready.forEach(transfer -> transfer.endBecause(cause));
  }

  private boolean settle() {
    Agreement.Group group = agreement.match();
    if (!group.isEmpty()) {
      moves.move(link.wire(), group);
      agreement.moved();
    }
    int failed = group.settled() - group.sends().size() - group.receives().size();
    counters.add(TransferCounter.FAILED, failed);
    return group.settled() > 0;
  }

  /**
   * What both ends knew of each other is void, and both meet anew if need be.
   *
   * @param reason for both ends
   */
  void breakOff(RuntimeException cause, String reason) {
    LOG.info("{} breaks off: {}", name, cause.toString());
    link.abort(reason);
    // A wire may take long to close, and nobody is to wait for that.
    agreement.announce(cause);
    link.letGo();
    counters.add(TransferCounter.FAILED, agreement.fail(cause));
  }
}
