package io.weft.collectives.clique;

import io.weft.collectives.fault.CollectiveException;
import io.weft.collectives.fault.CollectiveException.Kind;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * The entries and counters of a communicator cache. Thread-safe; nothing here takes long: what is
 * taken out is closed by who called.
 */
final class CliqueTable {
  /** In the order of last use. */
  private final Map<Side, CachedCommunicator> entries = new LinkedHashMap<>(16, 0.75f, true);

  /** Why, by life. */
  private final Map<Life, String> failed = new LinkedHashMap<>();

  private long requests;
  private long reused;
  private long created;
  private long discarded;
  private long evicted;
  private long aborted;
  private long refused;
  private boolean closed;

  /** A life of a process. */
  private record Life(String process, String incarnation) {}

  /**
   * Leases what is there; null when there is nothing of use.
   *
   * @throws CollectiveException when a member has failed
   */
  CachedCommunicator lease(Side side) {
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

  /** Keeps the new one, or leases the one that was faster. */
  CachedCommunicator insertOrLease(Side side, CachedCommunicator made) {
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

  /** What happened while a communicator was made counts too, so this is asked again then. */
  private void requireAlive(Side side) {
    if (closed) {
      throw new CollectiveException(
          Kind.CLOSED, List.of(side.rank()), "the communicator cache of " + side + " is closed");
    }
    for (int rank = 0; rank < side.key().size(); rank++) {
      CliqueMember member = side.key().members().get(rank);
      String reason = failed.get(new Life(member.process(), member.incarnation()));
      if (reason != null) {
        refused++;
        throw new CollectiveException(
            Kind.DEAD,
            List.of(rank),
            "rank " + rank + " of " + side.key() + " is a life that has ended: " + reason);
      }
    }
  }

  synchronized boolean isIdle(Side side) {
    CachedCommunicator cached = entries.get(side);
    return cached == null || cached.isIdle();
  }

  void evict(Side side) {
    CachedCommunicator cached;
    synchronized (this) {
      cached = entries.remove(side);
      evicted += cached == null ? 0 : 1;
    }
    if (cached != null) {
      cached.retire();
    }
  }

  /** Only this one: another may have taken its place. */
  void evict(Side side, CachedCommunicator cached) {
    synchronized (this) {
      if (!entries.remove(side, cached)) {
        return;
      }
      evicted++;
    }
    cached.retire();
  }

  synchronized List<CachedCommunicator> fail(String process, String incarnation, String reason) {
    failed.put(new Life(process, incarnation), reason);
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
}
