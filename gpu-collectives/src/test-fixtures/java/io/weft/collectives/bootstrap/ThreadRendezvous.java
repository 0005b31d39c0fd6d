package io.weft.collectives.bootstrap;

import io.weft.collectives.CollectiveException;
import io.weft.device.Deadline;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.function.Function;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A rendezvous of threads of this process. The last thread to arrive computes a result from the
 * values of all, and every thread leaves with that result. Used once.
 *
 * <p>A participant that failed arrives with its failure, so no other waits for it; then all leave
 * with that failure. When the deadline of one participant passes, all leave with an error that
 * names the missing ones. Later arrivals get the same error. After 10 s a warning names the missing
 * participants. Thread-safe.
 *
 * @param <V> the value of each participant
 * @param <R> the result for all
 */
public final class ThreadRendezvous<V, R> {
  private static final Logger LOG = LoggerFactory.getLogger(ThreadRendezvous.class);
  private static final Duration WARN_AFTER = Duration.ofSeconds(10);

  private final String name;
  private final Function<List<V>, R> combine;
  private final Logger log;
  private final long warnNanos;
  private final List<V> values;
  private final boolean[] arrived;
  private int missing;
  private boolean decided;
  private R result;
  private CollectiveException failure;
  private boolean warned;

  /**
   * A rendezvous of participants 0 to participants - 1.
   *
   * @param name its purpose, for messages
   * @param combine runs once, on the thread of the last participant; an exception it throws reaches
   *     all
   */
  public ThreadRendezvous(String name, int participants, Function<List<V>, R> combine) {
    this(name, participants, combine, LOG, WARN_AFTER);
  }

  ThreadRendezvous(
      String name, int participants, Function<List<V>, R> combine, Logger log, Duration warnAfter) {
    this.name = name;
    this.combine = combine;
    this.log = log;
    this.warnNanos = warnAfter.toNanos();
    this.values = new ArrayList<>(Collections.nCopies(participants, null));
    this.arrived = new boolean[participants];
    this.missing = participants;
  }

  /**
   * Arrives with a value and waits for the others.
   *
   * @throws CollectiveException when a participant failed or did not arrive, or combining failed
   */
  public R arrive(int participant, V value, Deadline deadline) {
    boolean last;
    synchronized (this) {
      last = admit(participant, value);
    }
    if (last) {
      combineForAll();
    }
    return await(deadline);
  }

  /** Arrives with a failure and returns the failure to leave with. */
  public CollectiveException arriveFailed(int participant, Throwable cause) {
    synchronized (this) {
      arrived[participant] = true;
      if (!decided) {
        decide(
            null,
            new CollectiveException(
                CollectiveException.Kind.ABORTED,
                List.of(participant),
                name + ": rank " + participant + " failed: " + cause.getMessage(),
                cause));
      }
      return failure != null
          ? failure
          : new CollectiveException(
              CollectiveException.Kind.ABORTED, List.of(participant), cause.getMessage(), cause);
    }
  }

  /**
   * Fails the rendezvous for all participants, including later ones. Does nothing once the result
   * is decided.
   */
  public synchronized void fail(CollectiveException cause) {
    decide(null, cause);
  }

  private boolean admit(int participant, V value) {
    if (arrived[participant]) {
      throw CollectiveException.invalid(name + ": rank " + participant + " arrived twice");
    }
    arrived[participant] = true;
    values.set(participant, value);
    missing--;
    return missing == 0 && !decided;
  }

  private void combineForAll() {
    R combined = null;
    CollectiveException failed = null;
    try {
      combined = combine.apply(values);
    } catch (CollectiveException e) {
      failed = e;
    } catch (RuntimeException e) {
      failed =
          new CollectiveException(
              CollectiveException.Kind.ABORTED, List.of(), name + ": " + e.getMessage(), e);
    }
    synchronized (this) {
      decide(combined, failed);
    }
  }

  private void decide(R combined, CollectiveException failed) {
    if (!decided) {
      decided = true;
      result = combined;
      failure = failed;
      notifyAll();
    }
  }

  private synchronized R await(Deadline deadline) {
    try {
      while (!decided) {
        if (deadline.expired()) {
          decide(null, timeout(deadline));
        } else {
          warnOnce(deadline);
          wait(pauseMillis(deadline));
        }
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      decide(null, interrupted());
    }
    if (failure != null) {
      throw failure;
    }
    return result;
  }

  private void warnOnce(Deadline deadline) {
    if (!warned && deadline.elapsedNanos() >= warnNanos) {
      warned = true;
      log.warn(
          "{}: still waiting for {} after {}",
          name,
          CollectiveException.name(absent()),
          Deadline.describe(deadline.elapsedNanos()));
    }
  }

  private long pauseMillis(Deadline deadline) {
    long nanos = deadline.remainingNanos();
    if (!warned) {
      nanos = Math.min(nanos, Math.max(0, warnNanos - deadline.elapsedNanos()));
    }
    return Math.max(1, nanos / 1_000_000L);
  }

  private CollectiveException interrupted() {
    return new CollectiveException(
        CollectiveException.Kind.ABORTED,
        List.of(),
        name
            + ": a participant was interrupted while waiting for "
            + CollectiveException.name(absent()));
  }

  private CollectiveException timeout(Deadline deadline) {
    List<Integer> absent = absent();
    String detail =
        absent.isEmpty()
            ? "all ranks arrived but combining has not ended"
            : CollectiveException.name(absent) + " did not arrive";
    return new CollectiveException(
        CollectiveException.Kind.TIMEOUT,
        absent,
        name + ": " + detail + " within " + deadline + " (" + arrived.length + " take part)");
  }

  private List<Integer> absent() {
    List<Integer> absent = new ArrayList<>();
    for (int participant = 0; participant < arrived.length; participant++) {
      if (!arrived[participant]) {
        absent.add(participant);
      }
    }
    return absent;
  }
}
