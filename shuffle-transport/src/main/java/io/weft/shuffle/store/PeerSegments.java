package io.weft.shuffle.store;

import static io.weft.shuffle.peer.ExchangeCounter.SEGMENTS_MAPPED;
import static io.weft.shuffle.peer.ExchangeCounter.SEGMENTS_UNMAPPED;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.weft.memory.MappedSegment;
import io.weft.shuffle.peer.ExchangeCounters;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The mapped segments of one peer on this host. Each segment is mapped once for all shuffles. It
 * stays mapped between shuffles, because the peer uses it again, but not while both are idle: a
 * mapping keeps the memory of a file that the peer has deleted. Thread-safe.
 */
public final class PeerSegments implements AutoCloseable {
  private final Path folder;
  private final ExchangeCounters counters;
  private final ConcurrentHashMap<Integer, Mapped> segments = new ConcurrentHashMap<>();

  PeerSegments(Path folder, ExchangeCounters counters) {
    this.folder = folder;
    this.counters = counters;
  }

  /**
   * Maps a segment, or reuses its mapping, and counts one more user.
   *
   * @throws IOException if the peer deleted it or it cannot be mapped
   */
  Mapped retain(int id) throws IOException {
    Mapped known = segments.get(id);
    if (known != null && known.retain()) {
      return known;
    }
    Mapped fresh = new Mapped(id, attach(folder.resolve("segment-" + id)));
    counters.increment(SEGMENTS_MAPPED);
    while (true) {
      Mapped other = segments.putIfAbsent(id, fresh);
      if (other == null) {
        return fresh;
      }
      if (other.retain()) {
        fresh.unmap();
        return other;
      }
      // Another thread unmapped it in the meantime and may not have removed it from the map yet.
      segments.remove(id, other);
    }
  }

  private static MappedSegment attach(Path file) throws IOException {
    try {
      return MappedSegment.attach(file);
    } catch (NoSuchFileException e) {
      throw new NotInPlaceException(
          file + " does not exist: its executor has ended, or its folder was deleted", e);
    } catch (IOException e) {
      throw new NotInPlaceException(file + " cannot be mapped: " + e, e);
    }
  }

  /** Unmaps unused segments whose files the peer has deleted, because they pin memory. */
  void unmapDeleted() {
    for (Mapped mapped : segments.values()) {
      if (!mapped.isUsed() && !Files.exists(mapped.segment.file())) {
        mapped.unmapIfUnused(0);
      }
    }
  }

  /** Drops the pages of all mapped segments from this process; they are mapped again when read. */
  void dropPages() {
    segments.values().forEach(mapped -> mapped.segment.dropPages());
  }

  /** Unmaps segments without users for that time. */
  void unmapIdle(long nanos) {
    segments.values().forEach(mapped -> mapped.unmapIfUnused(nanos));
  }

  /** The number of segments that are mapped now. */
  int size() {
    return segments.size();
  }

  /** Unmaps segments without users, and the others after their last user. */
  @Override
  public void close() {
    unmapIdle(0);
  }

  /** One mapped segment and the number of its users. */
  final class Mapped {
    private final int id;
    private final MappedSegment segment;

    @GuardedBy("this")
    private int users = 1;

    @GuardedBy("this")
    private long unusedSince;

    @GuardedBy("this")
    private boolean unmapped;

    Mapped(int id, MappedSegment segment) {
      this.id = id;
      this.segment = segment;
    }

    /** The address of the segment's first byte. */
    long address() {
      return segment.address();
    }

    /** Checks that a range is inside the segment. */
    void require(long offset, long length) throws IOException {
      if (length > segment.size() - offset) {
        throw new IOException(
            segment.file()
                + " has "
                + segment.size()
                + " bytes, the index names "
                + length
                + " at "
                + offset);
      }
    }

    private synchronized boolean retain() {
      if (unmapped) {
        return false;
      }
      users++;
      return true;
    }

    private synchronized boolean isUsed() {
      return users > 0;
    }

    /**
     * Counts one user less.
     *
     * @param regularSegmentBytes size of the peer's regular segments. A larger segment held a
     *     single chunk and is not reused, so it is unmapped after its last user
     */
    void release(long regularSegmentBytes, boolean closing) {
      synchronized (this) {
        users--;
        unusedSince = System.nanoTime();
      }
      if (closing || segment.size() > regularSegmentBytes) {
        unmapIfUnused(0);
      }
    }

    private void unmapIfUnused(long nanos) {
      synchronized (this) {
        if (users > 0 || unmapped || System.nanoTime() - unusedSince < nanos) {
          return;
        }
        unmapped = true;
      }
      segments.remove(id, this);
      unmap();
    }

    private void unmap() {
      segment.close();
      counters.increment(SEGMENTS_UNMAPPED);
    }
  }

  /**
   * Thrown if an output of a peer on this host cannot be read in place: its index or a segment is
   * missing, or cannot be mapped. A peer that has the output can send it over the network instead.
   */
  public static final class NotInPlaceException extends IOException {
    private static final long serialVersionUID = 1L;

    NotInPlaceException(String message, Throwable cause) {
      super(message, cause);
    }
  }
}
