package io.weft.memory;

import io.weft.memory.ExtentLedger.Granules;
import io.weft.memory.SharedArena.Range;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.util.List;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Creates and deletes segments and updates the ledger. All I/O of the arena is here, outside the
 * ledger's lock. Thread-safe.
 */
final class SegmentSupply {
  private static final Logger LOG = LoggerFactory.getLogger(SegmentSupply.class);

  private final Path folder;
  private final ExtentLedger ledger;
  private volatile Runnable restoreFolder = () -> {};

  SegmentSupply(Path folder, ExtentLedger ledger) {
    this.folder = folder;
    this.ledger = ledger;
  }

  /** Sets the action that creates the folder again after it was deleted. */
  void onLostFolder(Runnable restore) {
    restoreFolder = restore;
  }

  /** Runs the action of {@link #onLostFolder} if the folder was deleted; returns whether it ran. */
  boolean restoreFolder() {
    boolean lost = !Files.isDirectory(folder);
    if (lost) {
      restoreFolder.run();
    }
    return lost;
  }

  /** Gives up the names of all segments. Their memory is not allocated again. */
  void abandonFiles() {
    ledger.abandonFiles().forEach(this::discard);
  }

  Path name(int segment) {
    return folder.resolve("segment-" + segment);
  }

  /** Adds a segment and allocates its first granules; null when the tier cannot grow. */
  Extent grow(Tier tier, long segmentBytes, int granules) {
    return make(tier, segmentBytes, granules, false);
  }

  /** Adds a segment for one extent alone; null when the tier cannot grow. */
  Extent oversize(Tier tier, int granules) {
    return make(tier, Granules.bytes(granules), granules, true);
  }

  /** Makes a segment whose name other processes can find. */
  private Extent make(Tier tier, long bytes, int granules, boolean oversize) {
    Extent extent = makeOnce(tier, bytes, granules, oversize);
    if (extent == null || hasName(tier, extent.segment())) {
      return extent;
    }
    // The folder was deleted meanwhile, perhaps also created again.
    discardUnnamed(extent);
    boolean unused = restoreFolder();
    return makeOnce(tier, bytes, granules, oversize);
  }

  private boolean hasName(Tier tier, int segment) {
    return tier.kind == MemoryKind.PRIVATE
        || Files.exists(name(segment), LinkOption.NOFOLLOW_LINKS);
  }

  /** The segment goes with its last extent: another thread may have one in it. */
  private void discardUnnamed(Extent extent) {
    ledger.abandon(extent.segment());
    Segment unused = ledger.free(extent);
    if (unused != null) {
      discard(unused);
    }
  }

  private Extent makeOnce(Tier tier, long bytes, int granules, boolean oversize) {
    int id = ledger.claim(tier, bytes);
    if (id < 0) {
      return null;
    }
    MappedSegment mapping = create(tier, id, bytes);
    if (mapping == null) {
      return null;
    }
    Segment segment = new Segment(id, tier, mapping, oversize);
    Extent extent = ledger.add(segment, granules);
    if (extent == null) {
      discard(segment);
      throw new IllegalStateException("the arena was closed while it grew");
    }
    return extent;
  }

  private MappedSegment create(Tier tier, int id, long bytes) {
    String failure = "the segment could not be created";
    MappedSegment mapping = null;
    try {
      mapping = createFile(tier, id, bytes);
    } catch (IOException e) {
      failure = e.getMessage();
      logOnce(tier, failure);
    } finally {
      if (mapping == null) {
        ledger.unclaim(tier, bytes, failure);
      }
    }
    return mapping;
  }

  private MappedSegment createFile(Tier tier, int id, long bytes) throws IOException {
    try {
      return tier.files.create(name(id), bytes);
    } catch (IOException e) {
      if (restoreFolder()) {
        return tier.files.create(name(id), bytes);
      }
      throw e;
    }
  }

  private void logOnce(Tier tier, String reason) {
    if (tier.firstFailure()) {
      LOG.warn("No more {} can be added for now in {}: {}", tier.kind, folder, reason);
    }
  }

  /**
   * Adds a segment of another arena.
   *
   * @param source the name of its file in that arena's folder
   * @param ranges of its extents, at least one
   * @param exempt whether it does not count in the tier's budget
   * @throws IOException if it cannot be mapped, or does not have these ranges
   */
  List<Extent> adopt(Tier tier, Path source, List<Range> ranges, boolean exempt)
      throws IOException {
    int id = ledger.nextSegment();
    MappedSegment mapping = tier.files.adopt(name(id), source);
    Segment segment = new Segment(id, tier, mapping, true);
    segment.exempt = exempt;
    List<Extent> extents = null;
    try {
      requireWithin(mapping, ranges);
      extents = ledger.adopt(segment, ranges);
    } finally {
      if (extents == null) {
        discard(segment);
      }
    }
    return extents;
  }

  private static void requireWithin(MappedSegment mapping, List<Range> ranges) throws IOException {
    for (Range range : ranges) {
      long end = range.offset() + Granules.bytes(Granules.covering(range.length()));
      if (end > mapping.size()) {
        throw new IOException(
            mapping.file() + " has " + mapping.size() + " bytes, and an extent ends at " + end);
      }
    }
  }

  /** Deletes unused segments so that {@code bytes} more fit; false when they are not enough. */
  boolean evict(Tier tier, long bytes) {
    List<Segment> evicted = ledger.evict(tier, bytes);
    evicted.forEach(this::discard);
    return !evicted.isEmpty();
  }

  /** Deletes segments that were empty for that time. */
  void deleteIdle(long nanos) {
    ledger.idle(nanos).forEach(this::discard);
  }

  /** Cuts the file of a segment of one extent after the extent that is kept. */
  void shorten(Extent kept) {
    Segment segment = ledger.segment(kept.segment());
    try {
      segment.mapping.truncate(kept.length());
      ledger.shortened(segment, kept.length());
    } catch (IOException e) {
      LOG.warn("Segment {} keeps its length: {}", segment.mapping.file(), e.toString());
    }
  }

  /** Deletes a segment's file and unmaps it. */
  void discard(Segment segment) {
    deleteFile(segment);
    segment.mapping.close();
  }

  /** Deletes a closing arena's segment, which stays mapped while it has extents. */
  void retire(Segment segment) {
    deleteFile(segment);
    if (segment.extents == 0) {
      segment.mapping.close();
    }
  }

  private void deleteFile(Segment segment) {
    try {
      segment.tier.files.delete(name(segment.id), segment.mapping);
    } catch (IOException e) {
      LOG.warn("Segment {} was not deleted: {}", segment.mapping.file(), e.toString());
    }
  }

  void close(Tier tier) {
    try {
      tier.files.close();
    } catch (IOException e) {
      LOG.warn("A folder of segments was not removed: {}", e.toString());
    }
  }
}
