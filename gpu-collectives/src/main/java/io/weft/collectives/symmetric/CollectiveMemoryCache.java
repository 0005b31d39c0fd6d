package io.weft.collectives.symmetric;

import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveException.Kind;
import io.weft.collectives.Communicator;
import io.weft.collectives.bootstrap.BootstrapRounds;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.Iterator;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.UUID;
import java.util.function.LongSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Keeps the symmetric segments of a process's communicators that have ended, for later
 * communicators with the same members. One process has one cache, so processes of other
 * applications and users never get the memory.
 *
 * <p>Reuse is safe only because all ranks hit or miss together: before a communicator reserves
 * memory, its ranks compare what their caches have, and use the smallest segment that is large
 * enough and that all ranks have back. If some ranks have freed it, all free it, and a warning
 * names those ranks.
 *
 * <p>Thread-safe. Memory is unmapped outside the lock.
 */
public final class CollectiveMemoryCache implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(CollectiveMemoryCache.class);

  /** A restarted process is another member. */
  private final String member = UUID.randomUUID().toString();

  private final LongSupplier clock;
  private final List<Idle> idle = new ArrayList<>();

  /** The ids of segments in use, each with the position that uses it. */
  private final Set<String> lent = new TreeSet<>();

  private long hits;
  private long misses;
  private long freshBytes;
  private long mismatches;
  private long lentBytes;
  private boolean closed;

  /** A segment that no communicator uses. */
  private record Idle(Gang gang, SymmetricSegment segment, long since) {}

  /** Creates an empty cache. */
  public CollectiveMemoryCache() {
    this(System::nanoTime);
  }

  CollectiveMemoryCache(LongSupplier clock) {
    this.clock = clock;
  }

  /** The name of this process among the members of gangs. */
  String member() {
    return member;
  }

  /**
   * Takes the smallest segment of at least that many bytes that all ranks of a gang have.
   * Collective.
   *
   * @return attached to the communicator, the same on all ranks; empty if there is none
   */
  Optional<SymmetricSegment> adopt(
      Communicator communicator, Gang gang, long bytes, BootstrapRounds rounds) {
    List<Idle> taken = new ArrayList<>();
    try {
      List<Offer> offers =
          rounds.exchange("cached", () -> offer(gang, bytes, taken).encode()).stream()
              .map(Offer::decode)
              .toList();
      Optional<Idle> best = best(taken, Offer.freeOnAll(offers));
      best.ifPresent(taken::remove);
      while (!taken.isEmpty()) {
        putBack(gang, taken.remove(0), offers);
      }
      best.ifPresent(found -> found.segment.attach(communicator, gang));
      return best.map(Idle::segment);
    } catch (RuntimeException | Error e) {
      taken.forEach(left -> giveBack(gang, left.segment, left.since));
      throw e;
    }
  }

  /** Of segments of the same size, the first in the order that all ranks know. */
  private static Optional<Idle> best(List<Idle> taken, List<String> freeOnAll) {
    return taken.stream()
        .filter(each -> freeOnAll.contains(each.segment.id()))
        .min(
            Comparator.<Idle>comparingLong(each -> each.segment.bytes())
                .thenComparingInt(each -> freeOnAll.indexOf(each.segment.id())));
  }

  private synchronized Offer offer(Gang gang, long bytes, List<Idle> taken) {
    // Those in use, before this rank takes any.
    List<String> used = List.copyOf(lent);
    for (Iterator<Idle> each = idle.iterator(); each.hasNext(); ) {
      Idle next = each.next();
      if (next.gang.isSame(gang) && next.segment.bytes() >= bytes) {
        each.remove();
        taken.add(next);
        lend(gang, next.segment);
      }
    }
    return new Offer(taken.stream().map(each -> each.segment.id()).toList(), used);
  }

  /** Keeps a segment that the other ranks have too; frees it if a rank has freed it. */
  private void putBack(Gang gang, Idle left, List<Offer> offers) {
    SymmetricSegment segment = left.segment;
    List<Integer> without = Offer.ranksWithout(offers, gang, segment.id());
    if (without.isEmpty()) {
      giveBack(gang, segment, left.since);
    } else {
      LOG.warn(
          "{} freed a symmetric segment of {} bytes that rank {} still had; all ranks free it",
          CollectiveException.name(without),
          segment.bytes(),
          gang.ranks().get(gang.own()));
      synchronized (this) {
        mismatches++;
      }
      drop(gang, segment);
    }
  }

  private static String place(Gang gang, SymmetricSegment segment) {
    return segment.id() + "@" + gang.own();
  }

  private void lend(Gang gang, SymmetricSegment segment) {
    lent.add(place(gang, segment));
    lentBytes += segment.bytes();
  }

  /** Counts a segment that a communicator has just created. */
  synchronized void created(Gang gang, SymmetricSegment segment) {
    freshBytes += segment.bytes();
    lend(gang, segment);
  }

  /** Counts a buffer, in reused or in fresh memory. */
  synchronized void served(boolean reused) {
    if (reused) {
      hits++;
    } else {
      misses++;
    }
  }

  /** Keeps a segment, detached, for the next communicator of the gang. */
  void giveBack(Gang gang, SymmetricSegment segment) {
    giveBack(gang, segment, clock.getAsLong());
  }

  private void giveBack(Gang gang, SymmetricSegment segment, long since) {
    synchronized (this) {
      if (!closed) {
        returned(gang, segment);
        idle.add(new Idle(gang, segment, since));
        return;
      }
    }
    drop(gang, segment);
  }

  private void returned(Gang gang, SymmetricSegment segment) {
    if (lent.remove(place(gang, segment))) {
      lentBytes -= segment.bytes();
    }
  }

  /** Frees a segment that was in use. */
  void drop(Gang gang, SymmetricSegment segment) {
    synchronized (this) {
      returned(gang, segment);
    }
    free(segment);
  }

  /** Logs a failure, because the caller frees other segments too. */
  private static void free(SymmetricSegment segment) {
    try {
      segment.close();
    } catch (RuntimeException e) {
      LOG.warn("Symmetric segment {} was not freed completely", segment.id(), e);
    }
  }

  /** Frees the segments that were not used for that time. */
  public void freeIdle(Duration time) {
    List<Idle> old = new ArrayList<>();
    synchronized (this) {
      long now = clock.getAsLong();
      for (Iterator<Idle> each = idle.iterator(); each.hasNext(); ) {
        Idle next = each.next();
        if (now - next.since >= time.toNanos()) {
          each.remove();
          old.add(next);
        }
      }
    }
    old.forEach(each -> free(each.segment));
  }

  /** Frees all segments that no communicator uses. */
  public void freeUnused() {
    freeIdle(Duration.ZERO);
  }

  /** The current counters. */
  public synchronized CacheStatistics statistics() {
    long idleBytes = idle.stream().mapToLong(each -> each.segment.bytes()).sum();
    return new CacheStatistics(hits, misses, mismatches, freshBytes, lentBytes, idleBytes);
  }

  /** Frees what is unused, and later what is returned. */
  @Override
  public void close() {
    synchronized (this) {
      closed = true;
    }
    freeUnused();
  }

  /**
   * Counters of a cache at one moment.
   *
   * @param hits symmetric buffers in memory of an earlier communicator
   * @param misses symmetric buffers in fresh memory of their communicator
   * @param mismatches segments freed because another rank had freed its part
   * @param freshBytes bytes of all segments created so far
   * @param usedBytes bytes of segments that communicators use now
   * @param idleBytes bytes of segments that are kept for later communicators
   */
  public record CacheStatistics(
      long hits, long misses, long mismatches, long freshBytes, long usedBytes, long idleBytes) {
    /** The counters of a process without a cache. */
    public static final CacheStatistics NONE = new CacheStatistics(0, 0, 0, 0, 0, 0);
  }

  /**
   * What a rank has of its gang's segments.
   *
   * @param free ids of those that it can use now
   * @param used ids and positions of those that communicators of its process use
   */
  record Offer(List<String> free, List<String> used) {
    byte[] encode() throws IOException {
      ByteArrayOutputStream bytes = new ByteArrayOutputStream();
      DataOutputStream out = new DataOutputStream(bytes);
      for (List<String> ids : List.of(free, used)) {
        out.writeInt(ids.size());
        for (String id : ids) {
          byte[] text = id.getBytes(StandardCharsets.UTF_8);
          out.writeInt(text.length);
          out.write(text);
        }
      }
      return bytes.toByteArray();
    }

    static Offer decode(byte[] message) {
      try {
        DataInputStream in = new DataInputStream(new ByteArrayInputStream(message));
        return new Offer(ids(in), ids(in));
      } catch (IOException | IllegalArgumentException e) {
        throw new CollectiveException(
            Kind.MISMATCH, List.of(), "a rank's offer of cached memory is not readable", e);
      }
    }

    private static List<String> ids(DataInputStream in) throws IOException {
      List<String> ids = new ArrayList<>();
      for (int left = in.readInt(); left > 0; left--) {
        ids.add(new String(in.readNBytes(checked(in)), StandardCharsets.UTF_8));
      }
      return ids;
    }

    private static int checked(DataInputStream in) throws IOException {
      int length = in.readInt();
      if (length < 0 || length > in.available()) {
        throw new IOException("an id of " + length + " bytes");
      }
      return length;
    }

    /** The ids that all ranks have free, in the order of rank 0. */
    static List<String> freeOnAll(List<Offer> offers) {
      return offers.get(0).free.stream()
          .filter(id -> offers.stream().allMatch(offer -> offer.free.contains(id)))
          .toList();
    }

    /** The ranks that have no longer a part of a segment, neither free nor in use. */
    static List<Integer> ranksWithout(List<Offer> offers, Gang gang, String id) {
      List<Integer> without = new ArrayList<>();
      for (int rank = 0; rank < offers.size(); rank++) {
        Offer offer = offers.get(rank);
        String place = id + "@" + gang.positions().get(rank);
        if (!offer.free.contains(id) && !offer.used.contains(place)) {
          without.add(rank);
        }
      }
      return without;
    }
  }
}
