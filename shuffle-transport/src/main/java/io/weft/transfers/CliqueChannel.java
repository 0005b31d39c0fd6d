package io.weft.transfers;

import io.weft.collectives.clique.CliqueKey;
import io.weft.collectives.clique.CliqueKey.CliqueMember;
import io.weft.device.Deadline;
import io.weft.device.Event;
import io.weft.device.EventFailedException;
import io.weft.device.EventTimeoutException;
import io.weft.device.HostEvent;
import io.weft.device.Lane;
import io.weft.transfers.CliqueAccess.CliqueConnection;
import io.weft.transfers.TransferCounter.TransferCounters;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.function.Predicate;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One end of one clique: a queue of transfers and the lane that runs them in rounds. Rounds run
 * while this end has an offer or waits for the peer. The lane acquires the communicator when it is
 * first needed and again after it broke, so no clique waits for another.
 *
 * <p>Thread-safe. Owns its lane and the lease of its communicator.
 */
final class CliqueChannel implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(CliqueChannel.class);
  private static final long FIRST_PAUSE_MILLIS = 1;
  private static final long LAST_PAUSE_MILLIS = 16;

  /** Between moves in quick succession, segments that are wanted back return with a move. */
  private static final long WANTED_REST_NANOS = 100_000_000;

  private static final Duration CLOSE_TIMEOUT = Duration.ofSeconds(5);

  private final CliqueKey key;
  private final CliqueMember self;
  private final TransferCounters counters;
  private final Lane lane;
  private final TransferQueue queue = new TransferQueue();
  private final CliqueConnection connection;

  /** Used by the lane's thread only. */
  private final CliqueRounds rounds;

  /** Whether this end offers to give up its communicator in the next round. */
  private boolean leaving;

  private volatile long lastRoundNanos;

  /** Guards the fields below, and is notified when there may be work. */
  private final Object lock = new Object();

  private boolean working;
  private Event work = HostEvent.completed("nothing");
  private RuntimeException ended;

  /**
   * Creates an idle channel.
   *
   * @param lane the channel takes ownership
   * @param timeout the longest wait for the end of a source after its group has moved
   */
  CliqueChannel(
      CliqueKey key,
      CliqueMember self,
      CliqueAccess access,
      TransferCounters counters,
      Lane lane,
      Duration timeout) {
    this.key = key;
    this.self = self;
    this.counters = counters;
    this.lane = lane;
    this.connection = new CliqueConnection(key, self, access);
    this.rounds = new CliqueRounds(key.toString(), connection, queue, counters, timeout);
  }

  /** Whether this incarnation of a process is one of the two ends. */
  boolean includes(String process, String incarnation) {
    return key.members().stream()
        .anyMatch(
            member -> member.process().equals(process) && member.incarnation().equals(incarnation));
  }

  /** Queues transfers. A send is recorded once its source is recorded. */
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
    definition.whenRecorded(
        () -> {
          record(transfer);
          if (definition.isOnDevice()) {
            wake();
          }
        });
    definition.whenDone(
        failure -> {
          if (failure != null) {
            transfer.fail(failure);
          }
          wake();
        });
  }

  /** Records the transfer unless its source failed before it was recorded. */
  private static void record(PreparedTransfer transfer) {
    if (transfer.definition().state() != Event.State.FAILED) {
      transfer.record();
    }
  }

  /** Starts the rounds if a transfer is ready. */
  private void wake() {
    synchronized (lock) {
      lock.notifyAll();
      if (working || ended != null || !rounds.hasReady()) {
        return;
      }
      work = submit("the rounds of " + key, this::work);
    }
  }

  /** The caller holds the lock. */
  private Event submit(String what, Lane.Work rounds) {
    working = true;
    return lane.submit(what, rounds);
  }

  /**
   * Starts a last round if the clique was idle this long, or for a short time with memory that is
   * wanted back. The peer does the same, so neither end waits long. An end that has a transfer to
   * offer keeps the communicator for both.
   */
  void retireIfIdle(Duration idle) {
    synchronized (lock) {
      boolean rests = connection.isOpen() && !working && ended == null;
      if (rests && System.nanoTime() - lastRoundNanos >= restNanos(idle)) {
        work = submit("the last round of " + key, this::leave);
      }
    }
  }

  /** The lane is idle, so its wire is not in use. */
  private long restNanos(Duration idle) {
    boolean wanted = connection.wire().holdsWantedMemory();
    return wanted ? Math.min(WANTED_REST_NANOS, idle.toNanos()) : idle.toNanos();
  }

  private void leave() {
    leaving = true;
    work();
  }

  /** Runs rounds until neither end waits for the other, as far as this end knows. */
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
      while (ended == null && rounds.isStuck() && !rounds.hasReady() && !pause.expired()) {
        lock.wait(Math.max(1, pause.remainingNanos() / 1_000_000));
      }
      if (ended == null && (rounds.hasReady() || rounds.isWaiting())) {
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

  /** Runs one round. Returns whether a transfer was settled. */
  private boolean round() {
    boolean leaves = leaving;
    leaving = false;
    boolean settled = rounds.round(leaves);
    lastRoundNanos = System.nanoTime();
    return settled;
  }

  private void breakOff(RuntimeException cause) {
    rounds.breakOff(cause, self + " gave up on its transfers: " + cause.getMessage());
  }

  /**
   * Aborts the current round because a transfer has timed out. Thread-safe.
   *
   * @param reason for the messages at both ends
   */
  void abort(String reason) {
    try {
      connection.abort(reason);
    } catch (RuntimeException e) {
      LOG.warn("The communicator of {} was not aborted", key, e);
    }
    wake();
  }

  /** As {@link #abort}, only if the current round waits for the peer to come. Thread-safe. */
  void abortWait(String reason) {
    if (rounds.isAwaitingPeer()) {
      abort(reason);
    }
  }

  /** Fails all present and future transfers. Returns at once. */
  void end(RuntimeException cause) {
    synchronized (lock) {
      if (ended != null) {
        return;
      }
      ended = cause;
      lock.notifyAll();
      if (!working) {
        work = submit("the end of " + key, this::endAll);
      }
    }
    connection.end(cause);
    queue.all().forEach(transfer -> transfer.failBecause(cause));
    rounds.standing().forEach(transfer -> transfer.failBecause(cause));
    abort(cause.getMessage());
  }

  /** The last work of the lane. */
  private void endAll() {
    List<PreparedTransfer> left = queue.clear();
    left.forEach(transfer -> transfer.endBecause(ended));
    breakOff(ended);
    counters.add(TransferCounter.FAILED, left.size());
  }

  /** Fails all transfers and waits up to 5 s for the lane. */
  @Override
  public void close() {
    end(new IllegalStateException("the transfers of " + self + " were closed"));
    Event last;
    synchronized (lock) {
      last = work;
    }
    try {
      last.await(Deadline.after(CLOSE_TIMEOUT));
    } catch (EventFailedException | EventTimeoutException e) {
      LOG.warn("{} does not end in time: {}", key, e.getMessage());
    }
    lane.close();
  }

  /**
   * The transfers of a clique that were not offered to the peer. Sends keep their order, and so do
   * receives. A send whose source is not ready delays the sends behind it, but no receive.
   * Thread-safe.
   */
  static final class TransferQueue {
    private final Deque<PreparedTransfer> sends = new ArrayDeque<>();
    private final Deque<PreparedTransfer> receives = new ArrayDeque<>();

    /** Adds transfers of one batch at once, so that they are offered together. */
    synchronized void add(List<PreparedTransfer> transfers) {
      transfers.forEach(transfer -> (transfer.sends() ? sends : receives).add(transfer));
    }

    synchronized boolean hasReady(Predicate<PreparedTransfer> readiness) {
      return isReady(sends, readiness) || isReady(receives, readiness);
    }

    private static boolean isReady(
        Deque<PreparedTransfer> transfers, Predicate<PreparedTransfer> readiness) {
      return !transfers.isEmpty() && readiness.test(transfers.peek());
    }

    /**
     * Takes out ready transfers, in order, until the taker refuses one. The taker runs under the
     * queue's lock and must not end a transfer, because a listener of its end may call this queue.
     */
    synchronized void takeReady(
        Predicate<PreparedTransfer> readiness, Predicate<PreparedTransfer> taker) {
      take(receives, readiness, taker);
      take(sends, readiness, taker);
    }

    private static void take(
        Deque<PreparedTransfer> from,
        Predicate<PreparedTransfer> readiness,
        Predicate<PreparedTransfer> taker) {
      while (isReady(from, readiness) && taker.test(from.peek())) {
        from.remove();
      }
    }

    /** Takes out all ready transfers. */
    synchronized List<PreparedTransfer> takeReady(Predicate<PreparedTransfer> readiness) {
      List<PreparedTransfer> ready = new ArrayList<>();
      takeReady(readiness, ready::add);
      return ready;
    }

    /** Takes out all transfers. */
    synchronized List<PreparedTransfer> clear() {
      List<PreparedTransfer> all = new ArrayList<>(sends);
      all.addAll(receives);
      sends.clear();
      receives.clear();
      return all;
    }

    /** All queued transfers. */
    synchronized List<PreparedTransfer> all() {
      List<PreparedTransfer> all = new ArrayList<>(sends);
      all.addAll(receives);
      return all;
    }
  }
}
