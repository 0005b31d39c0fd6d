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
import java.util.Iterator;
import java.util.List;
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
 * <p>Reuse is safe only because all ranks hit or miss together: before a communicator's first
 * buffer, its ranks compare what their caches have, and use a segment only if all ranks have it
 * back. If some ranks have freed it, all free it, and a warning names those ranks.
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
   * Takes the segments that all ranks of a gang have. Collective.
   *
   * @return attached to the communicator, in the same order on all ranks
   */
  List<SymmetricSegment> adopt(Communicator communicator, Gang gang, BootstrapRounds rounds) {
    List<SymmetricSegment> taken = new ArrayList<>();
    try {
      List<Offer> offers =
          rounds.exchange("cached", () -> offer(gang, taken).encode()).stream()
              .map(Offer::decode)
              .toList();
      List<SymmetricSegment> adopted = new ArrayList<>();
      for (String id : Offer.freeOnAll(offers)) {
        adopted.add(taken.remove(indexOf(taken, id)));
      }
      putBack(gang, taken, offers);
      taken.clear();
      adopted.forEach(segment -> segment.attach(communicator, gang));
      return adopted;
    } catch (RuntimeException e) {
      taken.forEach(segment -> giveBack(gang, segment));
      throw e;
    }
  }

  private static int indexOf(List<SymmetricSegment> segments, String id) {
    return segments.stream().map(SymmetricSegment::id).toList().indexOf(id);
  }

  private synchronized Offer offer(Gang gang, List<SymmetricSegment> taken) {
    // Those in use, before this rank takes any.
    List<String> used = List.copyOf(lent);
    for (Iterator<Idle> each = idle.iterator(); each.hasNext(); ) {
      Idle next = each.next();
      if (next.gang.isSame(gang)) {
        each.remove();
        taken.add(next.segment);
        lend(gang, next.segment);
      }
    }
    return new Offer(taken.stream().map(SymmetricSegment::id).toList(), used);
  }

  /** Keeps the segments that other ranks still use; frees those that a rank has freed. */
  private void putBack(Gang gang, List<SymmetricSegment> left, List<Offer> offers) {
    for (SymmetricSegment segment : left) {
      List<Integer> without = Offer.ranksWithout(offers, gang, segment.id());
      if (without.isEmpty()) {
        giveBack(gang, segment);
      } else {
        LOG.warn(
            "{} freed a symmetric segment of {} bytes that rank {} still had; all ranks free it",
            CollectiveException.name(without),
            segment.bytes(),
            gang.ranks().get(gang.own()));
        drop(gang, segment);
        synchronized (this) {
          mismatches++;
        }
      }
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
    synchronized (this) {
      if (!closed) {
        returned(gang, segment);
        idle.add(new Idle(gang, segment, clock.getAsLong()));
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
    segment.close();
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
    old.forEach(each -> each.segment.close());
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
