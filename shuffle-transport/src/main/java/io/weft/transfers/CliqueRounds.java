package io.weft.transfers;

import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveException.Kind;
import io.weft.device.Deadline;
import io.weft.device.Event;
import io.weft.device.EventFailedException;
import io.weft.device.EventTimeoutException;
import io.weft.transfers.CliqueAccess.CliqueConnection;
import io.weft.transfers.CliqueChannel.TransferQueue;
import io.weft.transfers.Manifest.ManifestEntry;
import io.weft.transfers.TransferCounter.TransferCounters;
import java.time.Duration;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.function.Predicate;
import java.util.stream.Stream;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The rounds of one end of a clique with its peer. In a round both ends exchange offers and confirm
 * them, then the matched transfers move. Used by the lane's thread.
 */
final class CliqueRounds {
  private static final Logger LOG = LoggerFactory.getLogger(CliqueRounds.class);

  private final String name;
  private final CliqueConnection connection;
  private final TransferQueue queue;
  private final TransferCounters counters;
  private final GroupMoves moves;
  private final OfferMatcher matcher = new OfferMatcher();
  private final VerdictExchange verdicts;

  /** Transfers that devices have and that may still wait for their sources. */
  private volatile List<PreparedTransfer> standing = List.of();

  private volatile boolean awaitingPeer;

  /**
   * Creates the rounds for a queue.
   *
   * @param name of the clique, for the log
   * @param timeout the longest wait for the end of a source after its group has moved
   */
  CliqueRounds(
      String name,
      CliqueConnection connection,
      TransferQueue queue,
      TransferCounters counters,
      Duration timeout) {
    this.name = name;
    this.connection = connection;
    this.queue = queue;
    this.counters = counters;
    this.moves = new GroupMoves(counters);
    this.verdicts = new VerdictExchange(connection, timeout);
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
            && connection.mayFollowDevices()
            && matcher.takesBehind(transfer.definition()));
  }

  /** Whether one of the ends waits for the other. */
  boolean isWaiting() {
    return matcher.isWaiting() || verdicts.isDue();
  }

  /** Whether both ends wait: nothing can happen until one of them offers more. */
  boolean isStuck() {
    return matcher.isStuck() && !verdicts.isDue();
  }

  /** Whether this end waits for the peer at the start of a round. Thread-safe. */
  boolean isAwaitingPeer() {
    return awaitingPeer;
  }

  /** The transfers that move once their sources end, which may be never. Thread-safe. */
  List<PreparedTransfer> standing() {
    return standing;
  }

  /**
   * Runs one round: waits for the peer, exchanges offers with it, and moves what matches. This end
   * may wait for long, and its transfers may fail meanwhile. So it makes its offers when the peer
   * has come. Both ends confirm them, so that no offer is out of date when it is matched.
   *
   * @param leaving whether to give up the communicator if this end has nothing to offer
   * @return whether a transfer was settled
   */
  boolean round(boolean leaving) {
    dropBrokenWire();
    long start = System.nanoTime();
    boolean reused = connection.isOpen();
    if (!reused) {
      if (leaving && leaves()) {
        return true;
      }
      open();
    }
    Optional<ManifestEntry> verdict = verdicts.own();
    counters.increment(TransferCounter.MANIFESTS);
    awaitPeer();
    Manifest manifest = new Manifest();
    verdict.ifPresent(each -> offerFirst(manifest, each));
    boolean leaves = leaving && leaves();
    if (leaves) {
      offerFirst(manifest, ManifestEntry.IDLE);
    } else {
      matcher.withdrawInto(manifest);
      offerTransfers(manifest, reused);
      matcher.endFailed();
    }
    boolean bothLeave = takeOffers(connection.wire().exchange(manifest)) && leaves;
    counters.add(TransferCounter.PEER_WAIT_NANOS, System.nanoTime() - start);
    if (bothLeave) {
      counters.add(TransferCounter.FAILED, matcher.clear());
      connection.closeCommunicator();
      counters.increment(TransferCounter.CLIQUES_RETIRED);
      return true;
    }
    return settle();
  }

  /** Whether this end needs no communicator. An end that owes or expects a verdict does. */
  private boolean leaves() {
    return !hasReady() && !isWaiting();
  }

  /**
   * Waits for the peer: both ends send an empty manifest. If that fails, so do the transfers that
   * were queued before.
   */
  private void awaitPeer() {
    Predicate<PreparedTransfer> queued = queuedNow();
    awaitingPeer = true;
    try {
      if (!connection.wire().exchange(new Manifest()).isEmpty()) {
        throw new IllegalArgumentException("the peer has sent offers before both ends were ready");
      }
    } catch (RuntimeException e) {
      failReady(e, queued);
      throw e;
    } finally {
      awaitingPeer = false;
    }
  }

  /**
   * The transfers that are queued now, if they are ready when asked. Later ones have more time, and
   * get a new communicator.
   */
  private Predicate<PreparedTransfer> queuedNow() {
    Set<PreparedTransfer> queued = Collections.newSetFromMap(new IdentityHashMap<>());
    queued.addAll(queue.all());
    return transfer -> queued.contains(transfer) && isReady(transfer);
  }

  private void offerTransfers(Manifest manifest, boolean reused) {
    int before = manifest.entries().size();
    queue.takeReady(this::isReady, transfer -> matcher.offerInto(manifest, transfer));
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
    if (confirms != verdicts.isExpected()) {
      throw new IllegalArgumentException(
          confirms ? "a verdict on nothing that moved" : "no verdict on what moved before it was");
    }
    if (entries.equals(List.of(ManifestEntry.IDLE))) {
      return true;
    }
    confirm(confirms ? entries.get(0).failure() : "");
    matcher.addPeerOffers(confirms ? entries.subList(1, entries.size()) : entries);
    return false;
  }

  /** Ends the transfers that moved behind recorded sources, by the verdicts of both ends. */
  private void confirm(String theirs) {
    OfferMatcher.Group group = verdicts.group();
    boolean sent = group.sourceFailure().isEmpty();
    counters.add(sent ? TransferCounter.SENT : TransferCounter.FAILED, group.sends().size());
    counters.add(
        theirs.isEmpty() ? TransferCounter.RECEIVED : TransferCounter.FAILED,
        group.receives().size());
    verdicts.settle(theirs);
    matcher.settled(group);
  }

  /**
   * Drops a wire that broke between rounds. No transfer fails for that, unless the peer is dead:
   * then it cannot come to a new rendezvous.
   */
  private void dropBrokenWire() {
    Optional<RuntimeException> failure = connection.failure();
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
    int unused = matcher.fail(failure.get());
    connection.closeCommunicator();
  }

  private static boolean isDeath(RuntimeException failure) {
    return failure instanceof CollectiveException known && known.kind() == Kind.DEAD;
  }

  /** Opens the connection. If that fails, so do the transfers that were queued before. */
  private void open() {
    Predicate<PreparedTransfer> queued = queuedNow();
    try {
      connection.open();
    } catch (RuntimeException e) {
      failReady(e, queued);
      throw e;
    }
  }

  /** Fails the ready transfers, without a lock: a listener may start new transfers at once. */
  private void failReady(RuntimeException cause) {
    failReady(cause, this::isReady);
  }

  private void failReady(RuntimeException cause, Predicate<PreparedTransfer> which) {
    List<PreparedTransfer> ready = queue.takeReady(which);
    counters.add(TransferCounter.FAILED, ready.size());
    ready.forEach(transfer -> transfer.endBecause(cause));
  }

  /**
   * Both ends confirm their offers before any is matched. A transfer may have been withdrawn after
   * its end made its manifest, and before the other end made its own.
   */
  private void confirmOffers() {
    boolean more = matcher.mayMatch();
    while (more) {
      Manifest mine = matcher.withdrawals();
      List<ManifestEntry> theirs = connection.wire().exchange(mine);
      matcher.addPeerWithdrawals(theirs);
      more = !mine.entries().isEmpty() || !theirs.isEmpty();
    }
  }

  private boolean settle() {
    confirmOffers();
    OfferMatcher.Matched matched = matcher.match();
    counters.add(
        TransferCounter.FAILED,
        matched.settled() - matched.complete().size() - matched.behind().size());
    if (!matched.complete().isEmpty()) {
      moves.move(connection.wire(), matched.complete());
      matcher.moved(matched.complete());
    }
    if (!matched.behind().isEmpty()) {
      moveBehind(matched.behind());
    }
    return matched.settled() > 0;
  }

  /** Enqueues a group behind the complete one, which must not wait for a source. */
  private void moveBehind(OfferMatcher.Group group) {
    standing = Stream.concat(group.sends().stream(), group.receives().stream()).toList();
    try {
      moves.moveBehind(connection.wire(), group);
    } finally {
      standing = List.of();
    }
    verdicts.begin(group);
  }

  /**
   * Drops the state of both ends. The next round opens a new communicator.
   *
   * @param reason for the messages at both ends
   */
  void breakOff(RuntimeException cause, String reason) {
    LOG.info("{} breaks off: {}", name, cause.toString());
    verdicts.clear();
    try {
      connection.abort(reason);
    } catch (RuntimeException | Error e) {
      LOG.warn("{}: the peer may not learn of the failure", name, e);
    }
    // Waiters learn of the failure first: a wire may take long to close.
    matcher.announce(cause);
    try {
      connection.closeCommunicator();
      counters.add(TransferCounter.FAILED, matcher.fail(cause));
    } catch (RuntimeException | Error e) {
      int left = matcher.clear();
      counters.add(TransferCounter.FAILED, left);
      LOG.error(
          "{}: the communicator may still use the memory of {} transfers, which is kept",
          name,
          left,
          e);
    }
  }

  /**
   * The verdict on a group that moved behind recorded, incomplete work: whether that work
   * succeeded. If the work failed, the moved data is void. The sending end puts the verdict into
   * its next manifest, and no transfer of the group completes before. Used by the lane's thread.
   */
  static final class VerdictExchange {
    /** How often a waiting lane checks its wire. */
    private static final Duration CHECK_PERIOD = Duration.ofMillis(10);

    private final CliqueConnection connection;
    private final Duration timeout;
    private OfferMatcher.Group group = OfferMatcher.Group.NONE;

    /**
     * Creates a state without a verdict.
     *
     * @param connection of the clique
     * @param timeout the longest wait for the end of a source after its group has moved
     */
    VerdictExchange(CliqueConnection connection, Duration timeout) {
      this.connection = connection;
      this.timeout = timeout;
    }

    /** Starts the confirmation of a group that has moved. */
    void begin(OfferMatcher.Group moved) {
      group = moved;
    }

    /** Drops the group. */
    void clear() {
      group = OfferMatcher.Group.NONE;
    }

    /** Whether one of the ends owes a verdict. */
    boolean isDue() {
      return !group.isEmpty();
    }

    /** Whether the peer owes a verdict. */
    boolean isExpected() {
      return !group.receives().isEmpty();
    }

    /** The group that waits for verdicts. */
    OfferMatcher.Group group() {
      return group;
    }

    /**
     * The verdict of this end, after its sources have ended. Empty if this end sent nothing.
     *
     * @throws TransferException if a source does not end in time
     */
    Optional<ManifestEntry> own() {
      if (group.sends().isEmpty()) {
        return Optional.empty();
      }
      Deadline deadline = Deadline.after(timeout);
      group.sources().forEach(source -> awaitEnd(source, deadline));
      return Optional.of(
          ManifestEntry.verdict(group.sourceFailure().map(PreparedTransfer::text).orElse("")));
    }

    /** Waits for the end of device work. The device has finished it; the host notices later. */
    private void awaitEnd(Event work, Deadline deadline) {
      while (work.state() == Event.State.RECORDED) {
        connection
            .failure()
            .ifPresent(
                failure -> {
                  throw failure;
                });
        if (Thread.currentThread().isInterrupted()) {
          throw new TransferException("interrupted while waiting for the end of " + work);
        }
        if (deadline.expired()) {
          throw new TransferException(
              work + " has not ended though the device has come behind it; waited " + deadline);
        }
        try {
          work.await(Deadline.after(CHECK_PERIOD));
        } catch (EventFailedException | EventTimeoutException e) {
          // The loop checks the state.
        }
      }
    }

    /**
     * Ends the transfers of the group by the verdicts of both ends.
     *
     * @param theirs the failure of the peer's sources; empty if they succeeded or the peer sent
     *     none
     */
    void settle(String theirs) {
      OfferMatcher.Group settled = group;
      group = OfferMatcher.Group.NONE;
      // One verdict for all sends, the one that the peer got.
      Optional<Throwable> failure = settled.sourceFailure();
      for (PreparedTransfer send : settled.sends()) {
        failure.ifPresentOrElse(send::end, send::complete);
      }
      for (PreparedTransfer receive : settled.receives()) {
        if (theirs.isEmpty()) {
          receive.complete();
        } else {
          receive.end(OfferMatcher.failedAtPeer(receive, theirs));
        }
      }
    }
  }
}
