package io.weft.collectives.symmetric;

import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveException.Kind;
import io.weft.collectives.bootstrap.BootstrapRounds;
import io.weft.collectives.bootstrap.CommunicatorBootstrap;
import io.weft.device.Deadline;
import io.weft.device.Event;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Lends the ranks of an arena the same memory again. The arena owns the memory, and the entries
 * expire with it. Reuse is safe only because all ranks hit or miss together. So every acquisition
 * compares the entries of all ranks. If some ranks have dropped an entry, all ranks allocate it
 * again, and a warning names those ranks and the key.
 *
 * <p>{@link #acquire} is collective. {@link #evict} and the other methods are local and
 * thread-safe. Does not own the arena.
 */
final class CollectiveMemoryCache implements AutoCloseable {
  private final SymmetricArena arena;
  private final CommunicatorBootstrap bootstrap;
  private final Logger log;
  private final Map<String, Entry> entries = new HashMap<>();
  private long hits;
  private long misses;
  private long mismatches;
  private long evictions;

  /** Memory of the arena, lent to the current borrower. The cache holds it until eviction. */
  static final class Entry {
    private final Window window;
    private final List<Event> pending = new ArrayList<>();
    private boolean lent;
    private boolean evicted;

    private Entry(Window window) {
      this.window = window;
      this.lent = true;
    }

    Window window() {
      return window;
    }

    synchronized Event[] pendingUses() {
      pending.removeIf(Entry::hasEnded);
      return pending.toArray(Event[]::new);
    }

    private static boolean hasEnded(Event event) {
      return event.state() == Event.State.COMPLETE || event.state() == Event.State.FAILED;
    }

    synchronized void usedUntil(Event event) {
      window.usedUntil(event);
      pending.removeIf(Entry::hasEnded);
      pending.add(event);
    }

    private synchronized boolean lend() {
      boolean free = !lent;
      lent = true;
      return free;
    }

    synchronized void giveBack() {
      lent = false;
      if (evicted) {
        window.close();
      }
    }

    private synchronized void evict() {
      evicted = true;
      if (!lent) {
        window.close();
      }
    }
  }

  /** Creates an empty cache. */
  public CollectiveMemoryCache(SymmetricArena arena) {
    this(arena, LoggerFactory.getLogger(CollectiveMemoryCache.class));
  }

  CollectiveMemoryCache(SymmetricArena arena, Logger log) {
    this.arena = arena;
    this.bootstrap = new CommunicatorBootstrap(arena.communicator());
    this.log = log;
  }

  /** Acquires memory for one request, as {@link #acquire(List)} does. */
  public CollectiveMemory acquire(CollectiveMemoryRequest request) {
    return acquire(List.of(request)).get(0);
  }

  /**
   * Returns memory for every request, in their order. Collective. A larger entry replaces an entry
   * that is too small.
   *
   * @throws CollectiveException of kind MISMATCH if the requests of ranks differ, or INVALID if a
   *     rank still has a loan of the same purpose; nothing has changed then
   */
  public List<CollectiveMemory> acquire(List<CollectiveMemoryRequest> requests) {
    BootstrapRounds rounds =
        new BootstrapRounds(bootstrap, Deadline.after(arena.communicator().timeout()));
    List<Entry> pinned = new ArrayList<>();
    List<CollectiveMemory> loans = new ArrayList<>();
    try {
      List<MemoryOffer> votes =
          rounds.exchange("memory", () -> vote(requests, pinned).encode()).stream()
              .map(MemoryOffer::decode)
              .toList();
      MemoryOffer.requireSameRequests(votes);
      for (int i = 0; i < requests.size(); i++) {
        loans.add(settle(requests.get(i), i, votes, pinned));
      }
      return loans;
    } catch (RuntimeException e) {
      loans.forEach(CollectiveMemory::close);
      pinned.stream().filter(Objects::nonNull).forEach(Entry::giveBack);
      throw e;
    }
  }

  /** Lends the entries at once, so they still exist when all ranks have agreed to use them. */
  private synchronized MemoryOffer vote(
      List<CollectiveMemoryRequest> requests, List<Entry> pinned) {
    List<Integer> held = new ArrayList<>();
    for (CollectiveMemoryRequest request : requests) {
      Entry entry = entries.get(request.purpose());
      if (entry != null && !entry.lend()) {
        throw CollectiveException.invalid(
            "rank "
                + arena.communicator().rank()
                + " asks for collective memory "
                + request
                + " that it already has on loan; close that first, or use another purpose");
      }
      pinned.add(entry);
      boolean fits = entry != null && entry.window.bytes() >= request.bytes();
      held.add(fits ? entry.window.number() : MemoryOffer.NONE);
    }
    return new MemoryOffer(List.copyOf(requests), held);
  }

  private CollectiveMemory settle(
      CollectiveMemoryRequest request, int index, List<MemoryOffer> votes, List<Entry> pinned) {
    int newest = MemoryOffer.NONE;
    for (MemoryOffer vote : votes) {
      newest = Math.max(newest, vote.held().get(index));
    }
    List<Integer> without = MemoryOffer.ranksWithout(votes, index, newest);
    Entry entry = pinned.set(index, null);
    if (newest != MemoryOffer.NONE && without.isEmpty()) {
      countHit();
      return new CollectiveMemory(entry, true);
    }
    if (newest != MemoryOffer.NONE) {
      warn(request, without);
    }
    if (entry != null) {
      entry.giveBack();
    }
    return make(request);
  }

  private synchronized void countHit() {
    hits++;
  }

  private void warn(CollectiveMemoryRequest request, List<Integer> without) {
    synchronized (this) {
      mismatches++;
    }
    log.warn(
        "{}: {} no longer had collective memory {} that the other ranks had; all allocate it again",
        arena.communicator(),
        CollectiveException.name(without),
        request);
  }

  private CollectiveMemory make(CollectiveMemoryRequest request) {
    boolean unused = evict(request.purpose());
    Window window = arena.window(request.bytes());
    Entry entry = new Entry(window);
    synchronized (this) {
      misses++;
      entries.put(request.purpose(), entry);
    }
    return new CollectiveMemory(entry, false);
  }

  /**
   * Drops an entry on this rank. A current loan of it continues; its memory is freed after the last
   * use. The other ranks learn of it in the next acquisition.
   *
   * @return whether the entry existed
   */
  public synchronized boolean evict(String purpose) {
    Entry entry = entries.remove(purpose);
    if (entry == null) {
      return false;
    }
    evictions++;
    entry.evict();
    return true;
  }

  /** The current counters. */
  public synchronized CacheStatistics statistics() {
    return new CacheStatistics(hits, misses, mismatches, evictions, entries.size());
  }

  /** Drops all entries on this rank. */
  @Override
  public synchronized void close() {
    for (String purpose : List.copyOf(entries.keySet())) {
      boolean unused = evict(purpose);
    }
  }

  /**
   * Counters of a cache at one moment.
   *
   * @param hits requests answered with cached memory, on all ranks
   * @param misses requests for which new memory was allocated
   * @param mismatches misses where some ranks still had the memory and others did not
   * @param evictions entries dropped on this rank, for any reason
   * @param entries entries that a request would find now
   */
  record CacheStatistics(long hits, long misses, long mismatches, long evictions, int entries) {}

  /**
   * The message of a rank when all acquire cached memory: its requests and, for each request, the
   * window that it has for it.
   *
   * @param held numbers of windows, or NONE, by request
   */
  record MemoryOffer(List<CollectiveMemoryRequest> requests, List<Integer> held) {
    static final int NONE = -1;

    byte[] encode() throws IOException {
      ByteArrayOutputStream bytes = new ByteArrayOutputStream();
      DataOutputStream out = new DataOutputStream(bytes);
      out.writeInt(requests.size());
      for (int i = 0; i < requests.size(); i++) {
        out.writeUTF(requests.get(i).purpose());
        out.writeLong(requests.get(i).bytes());
        out.writeInt(held.get(i));
      }
      return bytes.toByteArray();
    }

    static MemoryOffer decode(byte[] message) {
      try {
        DataInputStream in = new DataInputStream(new ByteArrayInputStream(message));
        int count = in.readInt();
        List<CollectiveMemoryRequest> requests = new ArrayList<>();
        List<Integer> held = new ArrayList<>();
        for (int i = 0; i < count; i++) {
          requests.add(new CollectiveMemoryRequest(in.readUTF(), in.readLong()));
          held.add(in.readInt());
        }
        return new MemoryOffer(requests, held);
      } catch (IOException | IllegalArgumentException e) {
        throw new CollectiveException(
            Kind.MISMATCH, List.of(), "a rank's vote on collective memory is not readable", e);
      }
    }

    /** Checks that all ranks request the same memory in the same order. */
    static void requireSameRequests(List<MemoryOffer> votes) {
      List<CollectiveMemoryRequest> first = votes.get(0).requests;
      for (int rank = 1; rank < votes.size(); rank++) {
        List<CollectiveMemoryRequest> other = votes.get(rank).requests;
        if (!other.equals(first)) {
          throw new CollectiveException(
              Kind.MISMATCH,
              List.of(0, rank),
              "rank 0 asks for collective memory " + first + " but rank " + rank + " for " + other);
        }
      }
    }

    /** The ranks whose window for a request is not this one. */
    static List<Integer> ranksWithout(List<MemoryOffer> votes, int request, int window) {
      List<Integer> without = new ArrayList<>();
      for (int rank = 0; rank < votes.size(); rank++) {
        if (votes.get(rank).held.get(request) != window) {
          without.add(rank);
        }
      }
      return without;
    }
  }
}
