package io.weft.crosshost;

import io.weft.collectives.buffer.TypedBuffer;
import io.weft.collectives.clique.CliqueKey;
import io.weft.collectives.clique.CliqueLease;
import io.weft.collectives.clique.CliqueMember;
import io.weft.collectives.fault.CollectiveException;
import io.weft.collectives.fault.CollectiveException.Kind;
import io.weft.crosshost.wire.Manifest;
import io.weft.crosshost.wire.ManifestEntry;
import io.weft.crosshost.wire.TransferWire;
import io.weft.device.Deadline;
import io.weft.device.Event;
import io.weft.device.EventFailedException;
import io.weft.device.EventTimeoutException;
import io.weft.device.HostEvent;
import io.weft.device.Lane;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One end of one clique: a queue of transfers and the lane that works them off in rounds, as long
 * as there is something to offer or the peer owes something. The communicator is acquired on the
 * lane, when it is first needed and again after it broke; so no clique waits for another one.
 *
 * <p>Thread-safe. Owns its lane and the lease of its communicator.
 */
final class CliqueChannel implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(CliqueChannel.class);
  private static final long FIRST_PAUSE_MILLIS = 1;
  private static final long LAST_PAUSE_MILLIS = 16;
  private static final Duration CLOSE_PATIENCE = Duration.ofSeconds(5);

  private final CliqueKey key;
  private final CliqueMember self;
  private final CliqueAccess access;
  private final TransferCounters counters;
  private final Lane lane;
  private final TransferQueue queue = new TransferQueue();

  /** For the lane's thread. */
  private final Agreement agreement = new Agreement();

  private CliqueLease lease;

  /** Whether this end would give its communicator up in the next round. */
  private boolean leaving;

  private volatile TransferWire wire;
  private volatile long lastRoundNanos;

  /** Guards what follows, and is notified when there may be more to do. */
  private final Object lock = new Object();

  private boolean working;
  private Event work = HostEvent.completed("nothing");
  private RuntimeException ended;

  /** The lane's thread while it waits for the peer to meet it. */
  private Thread meeting;

  /**
   * One end, with nothing to do yet.
   *
   * @param lane belongs to the channel from now on
   */
  CliqueChannel(
      CliqueKey key, CliqueMember self, CliqueAccess access, TransferCounters counters, Lane lane) {
    this.key = key;
    this.self = self;
    this.access = access;
    this.counters = counters;
    this.lane = lane;
  }

  /** Whether a process in this life is one of the two ends. */
  boolean includes(String process, String incarnation) {
    return key.members().stream()
        .anyMatch(
            member -> member.process().equals(process) && member.incarnation().equals(incarnation));
  }

  /** Gives transfers their places. A send gets on the lane once its source is recorded. */
  void add(List<PreparedTransfer> transfers) {
    transfers.forEach(PreparedTransfer::queue);
    RuntimeException refusal;
    synchronized (lock) {
      refusal = ended;
      if (refusal == null) {
        queue.add(transfers);
      }
    }
    if (refusal == null) {
      transfers.forEach(this::follow);
    } else {
      transfers.forEach(transfer -> transfer.endBecause(refusal));
      counters.add(TransferCounter.FAILED, transfers.size());
    }
  }

  private void follow(PreparedTransfer transfer) {
    Event definition = transfer.definition();
    transfer.event().whenDone(failure -> wake());
    if (definition.state() == Event.State.PENDING) {
      long start = System.nanoTime();
      counters.increment(TransferCounter.DEFINITION_WAITS);
      definition.whenRecorded(
          () -> counters.add(TransferCounter.DEFINITION_WAIT_NANOS, System.nanoTime() - start));
    }
    definition.whenRecorded(() -> record(transfer));
    definition.whenDone(
        failure -> {
          if (failure != null) {
            transfer.fail(failure);
          }
          wake();
        });
  }

  /** A source that failed before it was recorded has no place on any lane. */
  private static void record(PreparedTransfer transfer) {
    if (transfer.definition().state() != Event.State.FAILED) {
      transfer.record();
    }
  }

  /** Something may have become ready. */
  private void wake() {
    synchronized (lock) {
      lock.notifyAll();
      if (working || ended != null || !queue.hasReady()) {
        return;
      }
      work = submit("the rounds of " + key, this::work);
    }
  }

  /** Under the lock. */
  private Event submit(String what, Lane.Work rounds) {
    working = true;
    return lane.submit(what, rounds);
  }

  /**
   * Asks the peer for a last round if nothing was transferred for so long. The peer has been idle
   * for as long and asks for the same, so neither waits long for the other; who has something to
   * transfer instead, keeps the communicator for both.
   */
  void retireIfIdle(Duration idle) {
    synchronized (lock) {
      boolean rests = wire != null && !working && ended == null;
      if (rests && System.nanoTime() - lastRoundNanos >= idle.toNanos()) {
        work = submit("the last round of " + key, this::leave);
      }
    }
  }

  private void leave() {
    leaving = true;
    work();
  }

  /** Rounds until neither end owes the other anything that this end knows of. */
  private void work() {
    long pause = FIRST_PAUSE_MILLIS;
    try {
      do {
        pause = tryRound() ? FIRST_PAUSE_MILLIS : Math.min(2 * pause, LAST_PAUSE_MILLIS);
      } while (goesOn(pause));
    } catch (InterruptedException e) {
      end(new IllegalStateException("the lane of " + key + " was interrupted", e));
      endAll();
    }
  }

  private boolean tryRound() {
    try {
      return round();
    } catch (RuntimeException e) {
      breakOff(e);
    } catch (Error e) {
      breakOff(new IllegalStateException(e.toString(), e));
    }
    return false;
  }

  private boolean goesOn(long pauseMillis) throws InterruptedException {
    Deadline pause = Deadline.after(Duration.ofMillis(pauseMillis));
    synchronized (lock) {
      while (ended == null && agreement.isStuck() && !queue.hasReady() && !pause.expired()) {
        lock.wait(Math.max(1, pause.remainingNanos() / 1_000_000));
      }
      if (ended == null && (queue.hasReady() || agreement.isWaiting())) {
        return true;
      }
      working = false;
      if (ended == null) {
        return false;
      }
    }
    endAll();
    return false;
  }

  /** Whether anything was settled. */
  private boolean round() {
    dropBrokenWire();
    long start = System.nanoTime();
    boolean leaves = leaving && !queue.hasReady();
    leaving = false;
    boolean reused = wire != null;
    if (leaves && !reused) {
      return true;
    }
    if (!reused) {
      acquire();
    }
    Manifest manifest = new Manifest();
    if (leaves) {
      offerToLeave(manifest);
    } else {
      offerTransfers(manifest, reused);
    }
    counters.increment(TransferCounter.MANIFESTS);
    boolean bothLeave = hear(wire.exchange(manifest)) && leaves;
    counters.add(TransferCounter.PEER_WAIT_NANOS, System.nanoTime() - start);
    if (bothLeave) {
      retire();
      return true;
    }
    boolean settled = settle();
    lastRoundNanos = System.nanoTime();
    return settled;
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

  /** Both ends do this after the same round, so neither is left with half of a communicator. */
  private void retire() {
    closeWire();
    access.retire(lease, self);
    lease = null;
    counters.increment(TransferCounter.CLIQUES_RETIRED);
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
    Optional<RuntimeException> failure = wire == null ? Optional.empty() : wire.failure();
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
    LOG.info("{} meets anew: {}", key, failure.get().getMessage());
    int unused = agreement.fail(failure.get());
    letGo();
  }

  private static boolean isDeath(RuntimeException failure) {
    return failure instanceof CollectiveException known && known.kind() == Kind.DEAD;
  }

  /** What waited for it fails if there is no communicator to be had. */
  private void acquire() {
    try {
      lease = meet();
      wire = access.open(lease);
      failIfEnded();
    } catch (RuntimeException e) {
      failReady(e);
      throw e;
    }
  }

  /** Waits for the peer until this channel ends: then nobody would come any more. */
  private CliqueLease meet() {
    synchronized (lock) {
      failIfEnded();
      meeting = Thread.currentThread();
    }
    try {
      return access.acquire(key, self);
    } finally {
      synchronized (lock) {
        meeting = null;
        if (ended != null) {
          // It was for the meeting.
          boolean unused = Thread.interrupted();
        }
      }
    }
  }

  private void failIfEnded() {
    synchronized (lock) {
      if (ended != null) {
        throw ended;
      }
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
      move(group);
      agreement.moved();
    }
    int failed = group.settled() - group.sends().size() - group.receives().size();
    counters.add(TransferCounter.FAILED, failed);
    return group.settled() > 0;
  }

  /** First what travels as it is, then what is encoded: encoding begins meanwhile. */
  private void move(Agreement.Group group) {
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

  private static List<TypedBuffer> plain(List<PreparedTransfer> transfers) {
    return transfers.stream()
        .filter(transfer -> transfer.coding().isPlain())
        .map(PreparedTransfer::buffer)
        .toList();
  }

  /** On the lane: what both ends knew of each other is void, and both meet anew if need be. */
  private void breakOff(RuntimeException cause) {
    LOG.info("{} breaks off: {}", key, cause.toString());
    if (wire != null) {
      wire.abort(self + " gave up on its transfers: " + cause.getMessage());
    }
    // A wire may take long to close, and nobody is to wait for that.
    agreement.announce(cause);
    letGo();
    counters.add(TransferCounter.FAILED, agreement.fail(cause));
  }

  private void letGo() {
    closeWire();
    if (lease != null) {
      lease.close();
      lease = null;
    }
  }

  private void closeWire() {
    TransferWire last = wire;
    wire = null;
    if (last != null) {
      last.close();
    }
  }

  /**
   * Breaks what is under way, from any thread: a transfer took too long.
   *
   * @param reason for both ends
   */
  void abort(String reason) {
    TransferWire now = wire;
    if (now != null) {
      now.abort(reason);
    }
    wake();
  }

  /** Fails all transfers, now and from now on; returns at once. */
  @SuppressWarnings(
      "Interruption") // Of this channel's own thread, and only while it meets the peer.
  void end(RuntimeException cause) {
    synchronized (lock) {
      if (ended != null) {
        return;
      }
      ended = cause;
      lock.notifyAll();
      if (meeting != null) {
        meeting.interrupt();
      }
      if (!working) {
        work = submit("the end of " + key, this::endAll);
      }
    }
    queue.all().forEach(transfer -> transfer.fail(endOf(transfer, cause)));
    abort(cause.getMessage());
  }

  private static TransferException endOf(PreparedTransfer transfer, RuntimeException cause) {
    return new TransferException(transfer.event().what() + " failed: " + cause.getMessage(), cause);
  }

  /** On the lane, as the last thing it does. */
  private void endAll() {
    List<PreparedTransfer> left = queue.clear();
    left.forEach(transfer -> transfer.endBecause(ended));
    breakOff(ended);
    counters.add(TransferCounter.FAILED, left.size());
  }

  /** Ends with all transfers failed. Waits a little for what the lane is doing. */
  @Override
  public void close() {
    end(new IllegalStateException("the transfers of " + self + " were closed"));
    Event last;
    synchronized (lock) {
      last = work;
    }
    try {
      last.await(Deadline.after(CLOSE_PATIENCE));
    } catch (EventFailedException | EventTimeoutException e) {
      LOG.warn("{} does not end in time: {}", key, e.getMessage());
    }
    lane.close();
  }
}
