package io.weft.memory;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;

/**
 * Who has which bytes of the arena's segments: the one place that changes blocks, tiers' counters
 * and the list of extents that are out.
 *
 * <p>Thread-safe: every method holds this object's monitor for a short, bounded time and does no
 * I/O. Segments that are no longer needed are returned for the caller to delete.
 */
final class ExtentLedger {
  /** With {@code -Dweft.memory.trace=true} every extent remembers who allocated it, for leaks. */
  private static final boolean TRACE = Boolean.getBoolean("weft.memory.trace");

  private static final int LEAKS_NAMED = 5;

  private final Tier memory;
  private final Tier disk;
  private final Tier working;
  private final Tier lasting;
  private final Map<Integer, Segment> segments = new HashMap<>();

  /**
   * By identity: a second free of an extent whose place has been handed out again since is still
   * found out.
   */
  private final IdentityHashMap<Extent, Block> out = new IdentityHashMap<>();

  private int nextSegment;
  private long allocations;
  private long peakUsedBytes;
  private boolean refusing;
  private boolean closed;

  ExtentLedger(Tier memory, Tier disk, Tier working, Tier lasting) {
    this.memory = memory;
    this.disk = disk;
    this.working = working;
    this.lasting = lasting;
  }

  /** An extent of exactly so many granules, or null where no free block of the tier is as long. */
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
    return memory.usedBytes + disk.usedBytes + working.usedBytes + lasting.usedBytes;
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
          Granules.bytes(granules) + " bytes to keep of the shorter " + extent);
    }
    if (granules == block.granules) {
      return extent;
    }
    out.remove(extent);
    Tier tier = block.segment.tier;
    if (block.segment.oversize) {
      block.granules = granules;
    } else {
      tier.free.shrink(block, granules);
    }
    block.extent = extentOf(block);
    tier.usedBytes -= extent.length() - block.extent.length();
    out.put(block.extent, block);
    return block.extent;
  }

  /** Takes an extent back; returns its segment when that is to be deleted now, else null. */
  synchronized Segment free(Extent extent) {
    Block block = blockOf(extent);
    Segment segment = block.segment;
    out.remove(extent);
    block.extent = null;
    block.site = null;
    segment.extents--;
    segment.tier.usedBytes -= extent.length();
    if (!segment.oversize) {
      segment.tier.free.give(block);
    }
    if (segment.extents == 0 && (segment.oversize || closed)) {
      forget(segment);
      return segment;
    }
    segment.emptySince = System.nanoTime();
    return null;
  }

  /** Takes segments out of a tier that nothing was in for so long, for the caller to delete. */
  synchronized List<Segment> idle(Tier tier, long nanos) {
    long now = System.nanoTime();
    List<Segment> idle =
        segments.values().stream()
            .filter(segment -> segment.tier == tier && segment.extents == 0)
            .filter(segment -> now - segment.emptySince >= nanos)
            .toList();
    for (Segment segment : idle) {
      tier.free.remove(segment.first);
      forget(segment);
    }
    return idle;
  }

  private Block blockOf(Extent extent) {
    Block block = out.get(extent);
    if (block == null) {
      throw new IllegalStateException(
          extent
              + " is not out: it was freed or trimmed before, or did not come from this arena."
              + " Free the very object that allocate or trim returned, once");
    }
    return block;
  }

  /** Sets budget aside for a new segment and gives it a number; -1 when the budget is reached. */
  synchronized int claim(Tier tier, long bytes) {
    requireOpen();
    return tier.claim(bytes) ? nextSegment++ : -1;
  }

  /** Gives up a claim, for this reason. */
  synchronized void unclaim(Tier tier, long bytes, String reason) {
    tier.unclaim(bytes);
    tier.refuse(reason);
  }

  /**
   * Adds a segment that was made under a claim and hands out its first granules. Null when the
   * arena was closed, or refuses, in between: the segment is the caller's to delete.
   */
  synchronized Extent add(Segment segment, int granules) {
    if (refusing) {
      segment.tier.unclaim(segment.bytes);
      return null;
    }
    segments.put(segment.id, segment);
    segment.tier.added(segment.bytes);
    if (!segment.oversize) {
      segment.tier.free.shrink(segment.first, granules);
    }
    return handOut(segment.first);
  }

  /** Counts an oversize segment's file as shorter, after it was cut. */
  synchronized void shortened(Segment segment, long bytes) {
    segment.tier.reservedBytes -= segment.bytes - bytes;
    segment.bytes = bytes;
  }

  /**
   * Takes unused segments out of a tier, for the caller to delete, so that so many bytes more fit.
   * None when even all of them would not do.
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

  private void forget(Segment segment) {
    segments.remove(segment.id);
    segment.tier.removed(segment.bytes);
  }

  synchronized Segment segment(int id) {
    Segment segment = segments.get(id);
    if (segment == null) {
      throw new IllegalArgumentException("the arena has no segment " + id);
    }
    return segment;
  }

  /** From now on nothing is handed out. */
  synchronized void refuse() {
    refusing = true;
  }

  /** Closes the books; returns every segment. Those without extents are the caller's to unmap. */
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

  /** The first few extents that are out, and when traced where they were allocated. */
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
        working.statistics().plus(lasting.statistics()),
        peakUsedBytes,
        allocations,
        out.size());
  }

  synchronized String refusal(Tier tier) {
    return tier.refusal();
  }

  synchronized String describe() {
    String files = memory.describe() + "; " + disk.describe();
    return working.budgetBytes == 0
        ? files
        : files + "; " + working.describe() + "; " + lasting.describe();
  }
}
