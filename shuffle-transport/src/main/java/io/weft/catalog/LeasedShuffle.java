package io.weft.catalog;

import static io.weft.metrics.ExchangeCounter.INDEXES_READ;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.weft.host.Lease;
import io.weft.metrics.ExchangeCounters;
import java.io.IOException;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.concurrent.ConcurrentHashMap;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One shuffle of a peer on this host, while this executor holds the lease: the indexes read so far
 * and the mapped segments. Thread-safe.
 */
final class LeasedShuffle {
  private static final Logger LOG = LoggerFactory.getLogger(LeasedShuffle.class);

  private final Path folder;
  private final PeerSegments segments;
  private final ExchangeCounters counters;
  private final Lease lease;
  private final ConcurrentHashMap<BlockKey, LocatedOutput> outputs = new ConcurrentHashMap<>();
  private final ConcurrentHashMap<Integer, PeerSegments.Mapped> used = new ConcurrentHashMap<>();
  private volatile long regularSegmentBytes = Long.MAX_VALUE;

  @GuardedBy("this")
  private int readers = 1;

  @GuardedBy("this")
  private boolean ending;

  @GuardedBy("this")
  private boolean ended;

  /** Takes ownership of the lease. Counts one reader. */
  LeasedShuffle(Path folder, PeerSegments segments, Lease lease, ExchangeCounters counters) {
    this.folder = folder;
    this.segments = segments;
    this.lease = lease;
    this.counters = counters;
  }

  /** Counts one more reader. Returns false if the shuffle has ended. */
  synchronized boolean retain() {
    if (ended) {
      return false;
    }
    readers++;
    return true;
  }

  /** Counts one reader less. Returns true if the caller must close the shuffle. */
  synchronized boolean release() {
    readers--;
    // Without any index read there is nothing to keep. The shuffle may already be removed.
    return endIfUnread(ending || outputs.isEmpty());
  }

  /** Ends the shuffle after its last reader. Returns true if the caller must close it now. */
  synchronized boolean end() {
    ending = true;
    return endIfUnread(true);
  }

  @GuardedBy("this")
  private boolean endIfUnread(boolean wanted) {
    boolean now = wanted && readers == 0 && !ended;
    ended |= now;
    return now;
  }

  /** Whether the owner has deleted an index that was read here. */
  boolean isRemovedByOwner() {
    return outputs.keySet().stream()
        .findFirst()
        .map(key -> !IndexFiles.exists(folder, key))
        .orElse(false);
  }

  LocatedOutput output(BlockKey key) throws IOException {
    LocatedOutput known = outputs.get(key);
    if (known != null) {
      return known;
    }
    LocatedOutput read = read(key);
    LocatedOutput other = outputs.putIfAbsent(key, read);
    return other == null ? read : other;
  }

  private LocatedOutput read(BlockKey key) throws IOException {
    MapOutput index;
    try {
      index = IndexFiles.read(folder, key);
    } catch (NoSuchFileException e) {
      throw new IOException(
          key + " is not in " + folder + ": it was removed, or its executor has ended", e);
    }
    counters.increment(INDEXES_READ);
    regularSegmentBytes = index.segmentBytes();
    long[] address = new long[index.chunks()];
    for (int chunk = 0; chunk < address.length; chunk++) {
      PeerSegments.Mapped segment = segment(index.segment(chunk));
      address[chunk] = segment.address(index.offset(chunk), index.storedBytes(chunk));
    }
    return new LocatedOutput(index, address);
  }

  private PeerSegments.Mapped segment(int id) throws IOException {
    PeerSegments.Mapped known = used.get(id);
    if (known != null) {
      return known;
    }
    PeerSegments.Mapped retained = segments.retain(id);
    PeerSegments.Mapped other = used.putIfAbsent(id, retained);
    if (other == null) {
      return retained;
    }
    retained.release(Long.MAX_VALUE, false);
    return other;
  }

  /**
   * Releases the segments and then the lease. May be called only after {@link #release} or {@link
   * #end} returned true. The segments go first, because without the lease the owner may delete
   * them.
   */
  void close(boolean closing) {
    outputs.clear();
    used.values().forEach(segment -> segment.release(regularSegmentBytes, closing));
    used.clear();
    try {
      lease.close();
    } catch (IOException e) {
      // The owner detects the dead lease after this process has ended.
      LOG.warn("A lease in {} was not released: {}", folder, e.toString());
    }
  }
}
