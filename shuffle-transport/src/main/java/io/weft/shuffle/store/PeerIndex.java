package io.weft.shuffle.store;

import static io.weft.shuffle.peer.ExchangeCounter.INDEXES_READ;
import static io.weft.shuffle.peer.ExchangeCounter.LEASES_TAKEN;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.weft.shuffle.peer.ExchangeCounters;
import io.weft.shuffle.peer.PeerAddress;
import io.weft.shuffle.store.ShuffleHold.LocatedOutput;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.lang.ref.SoftReference;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicBoolean;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Reads the blocks of one peer on this host in place. The first reader of a shuffle takes the
 * lease. The lease and the indexes read are kept until the shuffle is removed and its last reader
 * is done. Thread-safe.
 */
public final class PeerIndex {
  /** Timeout for a lease that another thread takes, which creates one small file. */
  private static final long LEASE_TIMEOUT_SECONDS = 60;

  private final PeerAddress peer;
  private final Path folder;
  private final Reader reader;
  private final ExchangeCounters counters;
  private final PeerSegments segments;
  private final ConcurrentHashMap<Integer, Slot> slots = new ConcurrentHashMap<>();

  /** The reading executor, for the name of the lease. */
  record Reader(String executorId, String incarnation) {}

  /** A shuffle from the start of taking its lease until the lease is released. */
  private static final class Slot {
    private final CompletableFuture<LeasedShuffle> taken = new CompletableFuture<>();
  }

  PeerIndex(PeerAddress peer, Reader reader, ExchangeCounters counters) {
    this.peer = peer;
    this.folder = Path.of(peer.folder());
    this.reader = reader;
    this.counters = counters;
    this.segments = new PeerSegments(folder, counters);
  }

  /**
   * Holds a shuffle of the peer. The caller closes it.
   *
   * @throws IOException if the lease cannot be taken, for example because the peer's folder was
   *     removed
   */
  public ShuffleHold hold(int shuffleId) throws IOException {
    while (true) {
      Slot fresh = new Slot();
      Slot slot = slots.putIfAbsent(shuffleId, fresh);
      if (slot == null) {
        return new Hold(shuffleId, fresh, take(shuffleId, fresh));
      }
      LeasedShuffle leased = await(slot.taken, shuffleId);
      if (!leased.isLeaseLost() && leased.retain()) {
        return new Hold(shuffleId, slot, leased);
      }
      // It has just ended, or the peer made its folder again. The next reader takes a new lease.
      slots.remove(shuffleId, slot);
      end(shuffleId, slot, false);
    }
  }

  private LeasedShuffle take(int shuffleId, Slot slot) throws IOException {
    LeasedShuffle leased = null;
    IOException failure = new IOException("the lease on shuffle " + shuffleId + " was not taken");
    try {
      Lease lease = Lease.take(folder, shuffleId, reader.executorId(), reader.incarnation());
      leased = new LeasedShuffle(folder, segments, lease, counters);
      counters.increment(LEASES_TAKEN);
    } catch (IOException e) {
      failure = e;
      throw e;
    } finally {
      if (leased == null) {
        slots.remove(shuffleId, slot);
        slot.taken.completeExceptionally(failure);
      } else {
        slot.taken.complete(leased);
      }
    }
    return leased;
  }

  private LeasedShuffle await(CompletableFuture<LeasedShuffle> future, int shuffleId)
      throws IOException {
    try {
      return future.get(LEASE_TIMEOUT_SECONDS, TimeUnit.SECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new InterruptedIOException("interrupted before shuffle " + shuffleId + " was leased");
    } catch (ExecutionException e) {
      throw new IOException(e.getCause().getMessage(), e.getCause());
    } catch (TimeoutException e) {
      throw new IOException(
          "executor "
              + reader.executorId()
              + " waited "
              + LEASE_TIMEOUT_SECONDS
              + " s for the lease on shuffle "
              + shuffleId
              + " of "
              + peer
              + " in "
              + folder,
          e);
    }
  }

  /** Releases a shuffle after its last reader. */
  void removeShuffle(int shuffleId) {
    Slot slot = slots.get(shuffleId);
    if (slot != null) {
      end(shuffleId, slot, false);
    }
    endRemovedByOwner();
    unmapDeleted();
  }

  /** Unmaps unused segments whose files were deleted. */
  void unmapDeleted() {
    segments.unmapDeleted();
  }

  /**
   * Ends shuffles that their owner has removed. A reader may have started after the removal here
   * but before the removal by the owner.
   */
  private void endRemovedByOwner() {
    if (!HostPeers.isReachable(peer)) {
      // A dead owner removes nothing, and its mapped segments can still be read.
      return;
    }
    slots.forEach(
        (shuffleId, slot) -> {
          LeasedShuffle leased = slot.taken.getNow(null);
          if (leased != null && leased.isRemovedByOwner()) {
            end(shuffleId, slot, false);
          }
        });
  }

  private void end(int shuffleId, Slot slot, boolean closing) {
    CompletableFuture<Void> unused =
        slot.taken.thenAccept(
            leased -> {
              if (leased.end()) {
                close(shuffleId, slot, leased, closing);
              }
            });
  }

  private void close(int shuffleId, Slot slot, LeasedShuffle leased, boolean closing) {
    slots.remove(shuffleId, slot);
    leased.close(closing);
  }

  /** Releases all leases and unmaps all segments, those in use after their last reader. */
  void close() {
    slots.forEach((shuffleId, slot) -> end(shuffleId, slot, true));
    segments.close();
  }

  /** Drops the pages of the peer's segments from this process. */
  void dropPages() {
    segments.dropPages();
  }

  void unmapIdle(long nanos) {
    segments.unmapIdle(nanos);
  }

  /** The number of the peer's segments that are mapped now. */
  int mappedSegments() {
    return segments.size();
  }

  private final class Hold implements ShuffleHold {
    private final int shuffleId;
    private final Slot slot;
    private final LeasedShuffle leased;
    private final AtomicBoolean open = new AtomicBoolean(true);

    Hold(int shuffleId, Slot slot, LeasedShuffle leased) {
      this.shuffleId = shuffleId;
      this.slot = slot;
      this.leased = leased;
    }

    @Override
    public LocatedOutput output(BlockKey key) throws IOException {
      return leased.output(key);
    }

    @Override
    public void close() {
      if (open.getAndSet(false) && leased.release()) {
        PeerIndex.this.close(shuffleId, slot, leased, !Files.exists(folder));
      }
    }
  }

  /**
   * One shuffle of a peer on this host, while this executor holds the lease: the indexes read so
   * far and the mapped segments. Thread-safe.
   */
  static final class LeasedShuffle {
    private static final Logger LOG = LoggerFactory.getLogger(LeasedShuffle.class);

    private final Path folder;
    private final PeerSegments segments;
    private final ExchangeCounters counters;
    private final Lease lease;

    /** Indexes that were read. The collector may drop them, and they are read again. */
    private final ConcurrentHashMap<BlockKey, SoftReference<LocatedOutput>> outputs =
        new ConcurrentHashMap<>();

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

    /**
     * Whether the owner has created its folder again after another program deleted it with this
     * lease. While there is no folder, what is mapped can still be read: its owner has ended or
     * does not use that memory again.
     */
    boolean isLeaseLost() {
      return !lease.isVisible() && Files.exists(folder);
    }

    /** Whether the owner has deleted an index that was read here. */
    boolean isRemovedByOwner() {
      return outputs.keySet().stream()
          .findFirst()
          .map(key -> !IndexFiles.exists(folder, key))
          .orElse(false);
    }

    LocatedOutput output(BlockKey key) throws IOException {
      SoftReference<LocatedOutput> known = outputs.get(key);
      LocatedOutput output = known == null ? null : known.get();
      if (output == null) {
        output = read(key);
        outputs.put(key, new SoftReference<>(output));
      }
      return output;
    }

    private LocatedOutput read(BlockKey key) throws IOException {
      MapOutput index;
      try {
        index = IndexFiles.read(folder, key);
      } catch (NoSuchFileException e) {
        throw new PeerSegments.NotInPlaceException(
            key + " is not in " + folder + ": it was removed, or its executor has ended", e);
      }
      if (!lease.isVisible()) {
        // The index may be in a folder that the owner created again, without this lease.
        throw new PeerSegments.NotInPlaceException(
            "the lease on shuffle " + key.shuffleId() + " in " + folder + " was deleted", null);
      }
      counters.increment(INDEXES_READ);
      regularSegmentBytes = index.segmentBytes();
      SortedMap<Integer, Long> addresses = new TreeMap<>();
      PeerSegments.Mapped segment = null;
      for (int chunk = 0; chunk < index.chunks(); chunk++) {
        if (chunk == 0 || index.segment(chunk) != index.segment(chunk - 1)) {
          segment = segment(index.segment(chunk));
          addresses.put(index.segment(chunk), segment.address());
        }
        segment.require(index.offset(chunk), index.storedBytes(chunk));
      }
      return new LocatedOutput(index, addresses);
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
}
