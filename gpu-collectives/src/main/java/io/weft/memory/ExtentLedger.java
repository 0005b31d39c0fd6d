package io.weft.memory;

import io.weft.memory.SharedArena.Range;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;

/**
 * Keeps the owners of all bytes in the arena's segments. Only this class changes blocks, the
 * counters of tiers and the set of allocated extents.
 *
 * <p>Thread-safe: every method holds this object's monitor for a short, bounded time and does no
 * I/O. Segments that are no longer needed are returned to the caller, which deletes them.
 */
final class ExtentLedger {
  /**
   * With {@code -Dweft.memory.trace=true} every extent records the place of its allocation, to find
   * leaks.
   */
  private static final boolean TRACE = Boolean.getBoolean("weft.memory.trace");

  private static final int LEAKS_NAMED = 5;

  private final Tier memory;
  private final Tier disk;
  private final Tier transientMemory;
  private final Tier retainedMemory;
  private final Map<Integer, Segment> segments = new HashMap<>();

  /**
   * Compared by identity, so that a second free is detected even after the place was allocated
   * again.
   */
  private final IdentityHashMap<Extent, Block> out = new IdentityHashMap<>();

  private int nextSegment;
  private long allocations;
  private long peakUsedBytes;
  private boolean refusing;
  private boolean closed;

  ExtentLedger(Tier memory, Tier disk, Tier transientMemory, Tier retainedMemory) {
    this.memory = memory;
    this.disk = disk;
    this.transientMemory = transientMemory;
    this.retainedMemory = retainedMemory;
  }

  /**
   * Takes an extent of exactly that many granules; null when no free block of the tier is long
   * enough.
   */
  synchronized Extent take(Tier tier, int granules, boolean thorough) {
    requireOpen();
    Block block = tier.free.take(granules, thorough);
    return block == null ? null : handOut(block);
  }

  private Extent handOut(Block block) {
    block.extent = extentOf(block);
    block.site = TRACE ? new Throwable("allocated here") : null;
    out.put(block.extent, block);
    block.segment.extents++;
    block.segment.tier.usedBytes += block.extent.length();
    allocations++;
    peakUsedBytes = Math.max(peakUsedBytes, usedBytes());
    return block.extent;
  }

  private long usedBytes() {
    return memory.usedBytes + disk.usedBytes + transientMemory.usedBytes + retainedMemory.usedBytes;
  }

  private static Extent extentOf(Block block) {
    Segment segment = block.segment;
    long offset = Granules.bytes(block.start);
    return new Extent(
        segment.tier.kind,
        segment.id,
        offset,
        Granules.bytes(block.granules),
        segment.mapping.address() + offset);
  }

  private void requireOpen() {
    if (refusing) {
      throw new IllegalStateException("the arena is closed");
    }
  }

  /** Shortens an extent; the segment's file is not touched. */
  synchronized Extent trim(Extent extent, int granules) {
    Block block = blockOf(extent);
    if (granules > block.granules) {
      throw new IllegalArgumentException(
          Granules.bytes(granules) + " bytes cannot be kept of the shorter " + extent);
    }
    if (granules == block.granules) {
      return extent;
    }
    out.remove(extent);
    Tier tier = block.segment.tier;
    if (block.segment.disposable) {
      block.granules = granules;
    } else {
      tier.free.shrink(block, granules);
    }
    block.extent = extentOf(block);
    tier.usedBytes -= extent.length() - block.extent.length();
    out.put(block.extent, block);
    return block.extent;
  }

  /** Frees an extent; returns its segment if the caller must delete it now, else null. */
  synchronized Segment free(Extent extent) {
    Block block = blockOf(extent);
    Segment segment = block.segment;
    out.remove(extent);
    block.extent = null;
    block.site = null;
    segment.extents--;
    segment.tier.usedBytes -= extent.length();
    if (!segment.disposable) {
      segment.tier.free.give(block);
    }
    if (segment.extents == 0 && (segment.disposable || closed)) {
      forget(segment);
      return segment;
    }
    segment.emptySince = System.nanoTime();
    return null;
  }

  /** Removes the segments that were empty for that time, for the caller to delete. */
  synchronized List<Segment> idle(long nanos) {
    long now = System.nanoTime();
    List<Segment> idle =
        segments.values().stream()
            .filter(segment -> segment.extents == 0)
            .filter(segment -> now - segment.emptySince >= nanos)
            .toList();
    for (Segment segment : idle) {
      segment.tier.free.remove(segment.first);
      forget(segment);
    }
    return idle;
  }

  /**
   * Stops to allocate from all segments with files. Each is removed with its last extent. Returns
   * those without extents, for the caller to delete now.
   */
  synchronized List<Segment> abandonFiles() {
    List<Segment> named =
        segments.values().stream()
            .filter(segment -> segment.tier.kind != MemoryKind.PRIVATE && !segment.disposable)
            .toList();
    for (Segment segment : named) {
      segment.disposable = true;
      segment.tier.free.removeAll(segment);
    }
    List<Segment> unused = named.stream().filter(segment -> segment.extents == 0).toList();
    unused.forEach(this::forget);
    return unused;
  }

  /** Stops to allocate from a segment, which is removed with its last extent. */
  synchronized void abandon(int number) {
    Segment segment = segment(number);
    if (!segment.disposable) {
      segment.disposable = true;
      segment.tier.free.removeAll(segment);
    }
  }

  /**
   * Whether the memory of an extent can be allocated again once it is free. Fails as {@link #free}
   * does unless the extent is allocated.
   */
  synchronized boolean isReusable(Extent extent) {
    return !blockOf(extent).segment.disposable && !refusing;
  }

  private Block blockOf(Extent extent) {
    Block block = out.get(extent);
    if (block == null) {
      throw new IllegalStateException(
          extent
              + " is not allocated: it was freed or trimmed before, or is not of this arena."
              + " Free the object that allocate or trim returned, once");
    }
    return block;
  }

  /** Reserves budget for a new segment and returns its number; -1 when the budget is reached. */
  synchronized int claim(Tier tier, long bytes) {
    requireOpen();
    return tier.claim(bytes) ? nextSegment++ : -1;
  }

  /** Gives up a claim and records the reason. */
  synchronized void unclaim(Tier tier, long bytes, String reason) {
    tier.unclaim(bytes);
    tier.refuse(reason);
  }

  /**
   * Adds a segment that was created under a claim and allocates its first granules. Returns null
   * when the arena refuses allocations by now; the caller then deletes the segment.
   */
  synchronized Extent add(Segment segment, int granules) {
    if (refusing) {
      segment.tier.unclaim(segment.bytes);
      return null;
    }
    segments.put(segment.id, segment);
    segment.tier.added(segment.bytes);
    if (!segment.disposable) {
      segment.tier.free.shrink(segment.first, granules);
    }
    return handOut(segment.first);
  }

  /** Returns the number of a segment that takes no budget. */
  synchronized int nextSegment() {
    requireOpen();
    return nextSegment++;
  }

  /**
   * Adds a segment of another arena with its extents, in their order. After an exception the caller
   * deletes the segment.
   */
  synchronized List<Extent> adopt(Segment segment, List<Range> ranges) throws IOException {
    requireOpen();
    if (!segment.tier.mayAdopt(segment.bytes)) {
      throw new IOException("the adopted segments would exceed a whole budget of this executor");
    }
    segments.put(segment.id, segment);
    segment.tier.adopted(segment);
    List<Extent> extents = new ArrayList<>(ranges.size());
    for (Range range : ranges) {
      int start = (int) (range.offset() / Granules.BYTES);
      extents.add(handOut(new Block(segment, start, Granules.covering(range.length()))));
    }
    return extents;
  }

  /** Updates the counters after the file of a segment of one extent was shortened. */
  synchronized void shortened(Segment segment, long bytes) {
    segment.tier.reservedBytes -= segment.bytes - bytes;
    segment.bytes = bytes;
  }

  /**
   * Removes unused segments from a tier, for the caller to delete, so that {@code bytes} more fit.
   * Removes none when all of them together are not enough.
   */
  synchronized List<Segment> evict(Tier tier, long bytes) {
    long needed = tier.shortfall(bytes);
    List<Segment> unused = new ArrayList<>();
    for (Segment segment : segments.values()) {
      if (needed > 0 && segment.tier == tier && segment.extents == 0) {
        unused.add(segment);
        needed -= segment.bytes;
      }
    }
    if (needed > 0) {
      return List.of();
    }
    for (Segment segment : unused) {
      tier.free.remove(segment.first);
      forget(segment);
    }
    return unused;
  }

  /** All segments. The caller uses their mappings only, which may be closed meanwhile. */
  synchronized List<Segment> segments() {
    return List.copyOf(segments.values());
  }

  private void forget(Segment segment) {
    segments.remove(segment.id);
    segment.tier.removed(segment);
  }

  synchronized Segment segment(int id) {
    Segment segment = segments.get(id);
    if (segment == null) {
      throw new IllegalArgumentException("the arena has no segment " + id);
    }
    return segment;
  }

  /** Refuses all further allocations. */
  synchronized void refuse() {
    refusing = true;
  }

  /** Closes the ledger and returns every segment. The caller unmaps those without extents. */
  synchronized List<Segment> close() {
    if (closed) {
      return List.of();
    }
    closed = true;
    refusing = true;
    List<Segment> all = List.copyOf(segments.values());
    for (Segment segment : all) {
      if (segment.extents == 0) {
        forget(segment);
      }
    }
    return all;
  }

  /** The first few allocated extents and, when they are traced, the places of their allocation. */
  synchronized List<String> leaks() {
    List<String> leaks = new ArrayList<>();
    for (Block block : out.values()) {
      if (leaks.size() == LEAKS_NAMED) {
        break;
      }
      leaks.add(
          block.site == null
              ? block.extent.toString()
              : block.extent + " allocated at " + Arrays.toString(block.site.getStackTrace()));
    }
    return leaks;
  }

  synchronized ArenaStatistics statistics() {
    return new ArenaStatistics(
        memory.statistics(),
        disk.statistics(),
        transientMemory.statistics().plus(retainedMemory.statistics()),
        peakUsedBytes,
        allocations,
        out.size());
  }

  synchronized String refusal(Tier tier) {
    return tier.refusal();
  }

  synchronized String describe() {
    String files = memory.describe() + "; " + disk.describe();
    return transientMemory.budgetBytes == 0
        ? files
        : files + "; " + transientMemory.describe() + "; " + retainedMemory.describe();
  }

  /**
   * The unit of the arena: granules of 64 bytes, a cache line and Arrow's alignment. In this unit
   * an offset or a length within a segment is an int.
   */
  static final class Granules {
    static final int BYTES = 64;

    /** The longest extent and segment: the most that one MappedByteBuffer can map. */
    static final long MAX_BYTES = Integer.MAX_VALUE & -BYTES;

    private static final int SHIFT = 6;

    private Granules() {}

    /** The fewest granules that hold that many bytes. */
    static int covering(long bytes) {
      if (bytes < 1 || bytes > MAX_BYTES) {
        throw new IllegalArgumentException(
            bytes + " bytes requested from the arena; allowed are 1 to " + MAX_BYTES);
      }
      return (int) ((bytes + BYTES - 1) >>> SHIFT);
    }

    static long bytes(int granules) {
      return (long) granules << SHIFT;
    }
  }
}
