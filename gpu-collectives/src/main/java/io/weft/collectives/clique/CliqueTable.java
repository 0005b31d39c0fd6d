package io.weft.collectives.clique;

import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveException.Kind;
import io.weft.collectives.Communicator;
import io.weft.collectives.clique.CliqueKey.CliqueMember;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * The entries and counters of a communicator cache. Thread-safe. No method blocks for long: removed
 * communicators are closed outside the lock.
 */
final class CliqueTable {
  /** In the order of last use. */
  private final Map<CliqueSide, CachedCommunicator> entries = new LinkedHashMap<>(16, 0.75f, true);

  /** The reason of the failure, by incarnation. */
  private final Map<Incarnation, String> failed = new LinkedHashMap<>();

  private long requests;
  private long reused;
  private long created;
  private long discarded;
  private long evicted;
  private long aborted;
  private long refused;
  private boolean closed;

  /** One incarnation of a process. */
  private record Incarnation(String process, String id) {}

  /**
   * Leases the existing communicator; returns null when there is none that works.
   *
   * @throws CollectiveException when a member has failed
   */
  CachedCommunicator lease(CliqueSide side) {
    CachedCommunicator broken;
    synchronized (this) {
      requireAlive(side);
      CachedCommunicator cached = entries.get(side);
      if (cached == null || cached.lease()) {
        return cached;
      }
      broken = cached;
      entries.remove(side);
      evicted++;
    }
    broken.retire();
    return null;
  }

  /** Inserts the new communicator, or leases the one that was inserted first. */
  CachedCommunicator insertOrLease(CliqueSide side, CachedCommunicator made) {
    CachedCommunicator broken;
    synchronized (this) {
      requireAlive(side);
      CachedCommunicator first = entries.get(side);
      if (first != null && first.lease()) {
        return first;
      }
      entries.put(side, made);
      broken = first;
    }
    if (broken != null) {
      broken.retire();
    }
    return made;
  }

  /**
   * A member may also fail while a communicator is being created, so the insertion checks this
   * again.
   */
  private void requireAlive(CliqueSide side) {
    if (closed) {
      throw new CollectiveException(
          Kind.CLOSED, List.of(side.rank()), "the communicator cache of " + side + " is closed");
    }
    for (int rank = 0; rank < side.key().size(); rank++) {
      CliqueMember member = side.key().members().get(rank);
      String reason = failed.get(new Incarnation(member.process(), member.incarnation()));
      if (reason != null) {
        refused++;
        throw new CollectiveException(
            Kind.DEAD,
            List.of(rank),
            "rank " + rank + " of " + side.key() + " is a process that has ended: " + reason);
      }
    }
  }

  synchronized boolean isIdle(CliqueSide side) {
    CachedCommunicator cached = entries.get(side);
    return cached == null || cached.isIdle();
  }

  void evict(CliqueSide side) {
    CachedCommunicator cached;
    synchronized (this) {
      cached = entries.remove(side);
      evicted += cached == null ? 0 : 1;
    }
    if (cached != null) {
      cached.retire();
    }
  }

  /** Evicts only this communicator, because another may have replaced it. */
  void evict(CliqueSide side, CachedCommunicator cached) {
    synchronized (this) {
      if (!entries.remove(side, cached)) {
        return;
      }
      evicted++;
    }
    cached.retire();
  }

  synchronized List<CachedCommunicator> fail(String process, String incarnation, String reason) {
    failed.put(new Incarnation(process, incarnation), reason);
    List<CachedCommunicator> hit = new ArrayList<>();
    entries.forEach(
        (side, cached) -> {
          if (side.key().includes(process, incarnation)) {
            hit.add(cached);
          }
        });
    entries.values().removeAll(hit);
    aborted += hit.size();
    return hit;
  }

  synchronized List<CliqueKey> idle() {
    return entries.entrySet().stream()
        .filter(entry -> entry.getValue().isIdle())
        .map(entry -> entry.getKey().key())
        .distinct()
        .toList();
  }

  synchronized List<CachedCommunicator> clear() {
    closed = true;
    List<CachedCommunicator> all = List.copyOf(entries.values());
    entries.clear();
    return all;
  }

  synchronized void countRequest() {
    requests++;
  }

  synchronized void countReuse() {
    reused++;
  }

  synchronized void countCreated() {
    created++;
  }

  synchronized void countDiscarded() {
    discarded++;
  }

  synchronized CliqueStatistics statistics() {
    return new CliqueStatistics(
        requests, reused, created, discarded, evicted, aborted, refused, entries.size());
  }

  /**
   * A communicator with a count of its leases. It is closed once it is retired and has no lease.
   */
  static final class CachedCommunicator {
    private final Communicator communicator;
    private int leases;
    private boolean retired;
    private boolean closing;

    /** Starts with one lease, for the creator. */
    CachedCommunicator(Communicator communicator) {
      this.communicator = communicator;
      this.leases = 1;
    }

    Communicator communicator() {
      return communicator;
    }

    /** Adds a lease. Returns false when the communicator is retired or broken. */
    synchronized boolean lease() {
      if (retired || communicator.failure().isPresent()) {
        return false;
      }
      leases++;
      return true;
    }

    synchronized boolean isIdle() {
      return leases == 0;
    }

    void release() {
      boolean close;
      synchronized (this) {
        leases--;
        close = mustClose();
      }
      closeIf(close);
    }

    /** Allows no more leases from now on. */
    void retire() {
      boolean close;
      synchronized (this) {
        retired = true;
        close = mustClose();
      }
      closeIf(close);
    }

    private boolean mustClose() {
      boolean now = retired && leases == 0 && !closing;
      closing |= now;
      return now;
    }

    private void closeIf(boolean close) {
      if (close) {
        communicator.close();
      }
    }
  }

  /** One member's view of a clique. A process may host several members of the same clique. */
  record CliqueSide(CliqueKey key, int rank) {
    @Override
    public String toString() {
      return "rank " + rank + " of " + key;
    }
  }
}
