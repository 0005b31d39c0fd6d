package io.weft.memory;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A process's memory that others on the host may map: files of equal size, in shared memory first
 * and on disk after that, each filled with zeros and mapped once and reused until {@link #close}.
 *
 * <p>What is asked for is looked for in this order: free shared memory; a new segment of shared
 * memory, while its budget and the margin of the file system allow; what the {@link #onPressure}
 * hooks set free; free disk segments; a new disk segment. An extent longer than a segment gets a
 * segment of its own, deleted as soon as the extent is freed; where there is no room for it, unused
 * segments make way.
 *
 * <p>An arena with private memory ({@link ArenaOptions#privateBytes}) puts that in the place of the
 * disk: what lies there was asked for by {@link #allocateDisk}. It is for those who may not write
 * as it is to a disk what others give them.
 *
 * <p>Thread-safe. Allocating and freeing hold one lock for a short, bounded time; files are made,
 * mapped and deleted outside it, so only threads that need a new segment wait for one. An extent
 * belongs to its allocator until it is freed, also across close: a segment with extents out stays
 * mapped until the last of them is freed.
 */
public final class SharedArena implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(SharedArena.class);

  /** Longest wait for another thread that makes a segment or runs the pressure hooks. */
  private static final long PATIENCE_NANOS = TimeUnit.SECONDS.toNanos(120);

  private final ArenaOptions options;
  private final Tier memory;
  private final Tier disk;
  private final Tier privateMemory;

  /** What stands in for shared memory that is full. */
  private final Tier second;

  private final ExtentLedger ledger;
  private final SegmentSupply supply;
  private final SingleFlight pressure = new SingleFlight();
  private final List<Runnable> reclaims = new CopyOnWriteArrayList<>();

  private SharedArena(ArenaOptions options, SegmentStorage storage) {
    this.options = options;
    this.memory =
        new Tier(
            MemoryKind.SHARED_MEMORY,
            options.memoryBytes(),
            FolderSegmentFiles.of(options, storage));
    this.disk =
        new Tier(MemoryKind.DISK, options.diskBytes(), LinkedSegmentFiles.of(options, storage));
    this.privateMemory =
        new Tier(MemoryKind.PRIVATE, options.privateBytes(), new PrivateSegments());
    this.second = options.privateBytes() > 0 ? privateMemory : disk;
    this.ledger = new ExtentLedger(memory, disk, privateMemory);
    this.supply = new SegmentSupply(options.folder(), ledger);
  }

  /**
   * Opens an arena that has no segments yet.
   *
   * @throws IOException when the folder does not exist
   */
  public static SharedArena open(ArenaOptions options) throws IOException {
    return open(options, SegmentStorage.SYSTEM);
  }

  static SharedArena open(ArenaOptions options, SegmentStorage storage) throws IOException {
    if (!Files.isDirectory(options.folder())) {
      throw new IOException("the arena's folder " + options.folder() + " does not exist");
    }
    return new SharedArena(options, storage);
  }

  /**
   * Hands out memory with undefined contents.
   *
   * @param bytes 1 to 2^31 - 64
   * @return an extent of so many bytes, rounded up to a multiple of 64
   * @throws ArenaFullException when there is no room; the state is as before
   * @throws IllegalStateException when the arena is closed
   */
  public Extent allocate(long bytes) throws ArenaFullException {
    Extent extent = allocateShared(bytes);
    if (extent == null) {
      extent = underPressure(Granules.covering(bytes), bytes > options.segmentBytes());
    }
    if (extent == null) {
      throw full(bytes, second);
    }
    return extent;
  }

  private ArenaFullException full(long bytes, Tier tier) {
    return new ArenaFullException(
        "no room for "
            + Bytes.text(bytes)
            + ". "
            + ledger.describe()
            + (tier == privateMemory
                ? ". Raise spark.weft.memory.size or spark.weft.spill.privateMemory"
                : ". Raise spark.weft.memory.size or spark.weft.spill.size, or make room in"
                    + " spark.local.dir"));
  }

  /**
   * Hands out what can wait for another time: as {@link #allocate}, but leaves private memory to
   * those who cannot.
   *
   * @param bytes 1 to 2^31 - 64
   * @return as of {@link #allocate}; null where only private memory is left
   * @throws ArenaFullException as {@link #allocate} does, of an arena without private memory
   * @throws IllegalStateException when the arena is closed
   */
  public Extent allocateSpare(long bytes) throws ArenaFullException {
    return second == privateMemory ? allocateShared(bytes) : allocate(bytes);
  }

  /**
   * Hands out disk. Where it is full, the {@link #onPressure} hooks are asked to make room.
   *
   * @param bytes 1 to 2^31 - 64
   * @return as of {@link #allocate}
   * @throws ArenaFullException when the disk is full; the state is as before
   * @throws IllegalStateException when the arena is closed
   */
  public Extent allocateDisk(long bytes) throws ArenaFullException {
    int granules = Granules.covering(bytes);
    boolean oversize = bytes > options.segmentBytes();
    Extent extent = fromTier(disk, granules, oversize);
    if (extent == null) {
      reclaim();
      extent = fromTier(disk, granules, oversize);
    }
    if (extent == null) {
      throw full(bytes, disk);
    }
    return extent;
  }

  private Extent fromTier(Tier tier, int granules, boolean oversize) throws ArenaFullException {
    if (oversize) {
      return oversize(tier, granules);
    }
    Extent extent = ledger.take(tier, granules, false);
    return extent != null ? extent : growOrTake(tier, granules);
  }

  /**
   * Hands out shared memory, for what is not worth a file on disk. Nobody is asked to make room.
   *
   * @param bytes 1 to 2^31 - 64
   * @return as of {@link #allocate}; null when shared memory is full
   * @throws ArenaFullException when another thread does not come to an end with a new segment
   * @throws IllegalStateException when the arena is closed
   */
  public Extent allocateShared(long bytes) throws ArenaFullException {
    return fromTier(memory, Granules.covering(bytes), bytes > options.segmentBytes());
  }

  private Extent underPressure(int granules, boolean oversize) throws ArenaFullException {
    reclaim();
    Extent extent = oversize ? oversize(memory, granules) : ledger.take(memory, granules, true);
    return extent != null ? extent : fromTier(second, granules, oversize);
  }

  private Extent oversize(Tier tier, int granules) {
    Extent extent = supply.oversize(tier, granules);
    if (extent == null && supply.evict(tier, Granules.bytes(granules))) {
      extent = supply.oversize(tier, granules);
    }
    return extent;
  }

  /** One thread makes a segment, the others wait for it and look again. Null: no room. */
  private Extent growOrTake(Tier tier, int granules) throws ArenaFullException {
    while (true) {
      SingleFlight.Flight flight = tier.growth.enter();
      if (flight == null) {
        return leadGrowth(tier, granules);
      }
      boolean grown = await(flight, "a new segment of " + tier.kind);
      Extent extent = ledger.take(tier, granules, true);
      if (extent != null || !grown) {
        return extent;
      }
    }
  }

  private Extent leadGrowth(Tier tier, int granules) {
    Extent extent = null;
    try {
      // Another thread may have freed, or grown, since this one found nothing.
      extent = ledger.take(tier, granules, true);
      if (extent == null) {
        extent = supply.grow(tier, options.segmentBytes(), granules);
      }
      return extent;
    } finally {
      tier.growth.land(extent != null);
    }
  }

  private static boolean await(SingleFlight.Flight flight, String what) throws ArenaFullException {
    try {
      return flight.await(PATIENCE_NANOS);
    } catch (TimeoutException e) {
      throw new ArenaFullException(
          Thread.currentThread().getName()
              + " waited "
              + TimeUnit.NANOSECONDS.toSeconds(PATIENCE_NANOS)
              + " s for "
              + what
              + " from "
              + flight.leader());
    }
  }

  private void reclaim() throws ArenaFullException {
    if (reclaims.isEmpty()) {
      return;
    }
    SingleFlight.Flight flight = pressure.enter();
    if (flight != null) {
      await(flight, "the hooks that free memory");
      return;
    }
    try {
      reclaims.forEach(SharedArena::runReclaim);
    } finally {
      pressure.land(true);
    }
  }

  private static void runReclaim(Runnable reclaim) {
    try {
      reclaim.run();
    } catch (RuntimeException e) {
      // The allocation can still be served from disk.
      LOG.warn("A hook that frees arena memory failed", e);
    }
  }

  /**
   * Shortens an extent.
   *
   * @param bytes how many of the first bytes to keep, 1 to the extent's length; rounded up to 64
   * @return what takes the extent's place; the extent itself must not be used any more, unless it
   *     is what is returned
   * @throws IllegalStateException when the extent is not out
   */
  public Extent trim(Extent extent, long bytes) {
    Extent kept = ledger.trim(extent, Granules.covering(bytes));
    boolean ofFile = extent.kind() != MemoryKind.PRIVATE;
    if (ofFile && extent.length() > options.segmentBytes() && kept.length() < extent.length()) {
      supply.shorten(kept);
    }
    return kept;
  }

  /**
   * Takes an extent back; its address must not be used any more.
   *
   * @param extent the object that {@link #allocate} or {@link #trim} returned
   * @throws IllegalStateException when the extent is not out, as after an earlier free
   */
  public void free(Extent extent) {
    Segment unneeded = ledger.free(extent);
    if (unneeded != null) {
      supply.discard(unneeded);
    }
  }

  /**
   * Gives disk and private memory back: deletes their segments that nothing was in for so long.
   * Shared memory is kept, because reusing it is what makes it fast.
   */
  public void freeIdle(Duration idle) {
    supply.deleteIdle(disk, idle.toNanos());
    supply.deleteIdle(privateMemory, idle.toNanos());
  }

  /** Most bytes of private memory; 0 of an arena without. */
  public long privateBytes() {
    return options.privateBytes();
  }

  /** The name under which other processes of this user find a segment that has a file. */
  public Path segmentFile(int segment) {
    return supply.name(segment);
  }

  /**
   * A view of an extent's bytes, valid as long as the extent is out. Big-endian, like every new
   * buffer.
   */
  public ByteBuffer view(Extent extent) {
    MappedSegment mapping = ledger.segment(extent.segment()).mapping;
    return mapping.slice(extent.offset(), (int) extent.length());
  }

  /** The counters as they are together at one moment. */
  public ArenaStatistics statistics() {
    return ledger.statistics();
  }

  /** Why the last segment of a kind was not made; empty while none was refused. */
  public Optional<String> refusal(MemoryKind kind) {
    Tier tier =
        switch (kind) {
          case SHARED_MEMORY -> memory;
          case DISK -> disk;
          case PRIVATE -> privateMemory;
        };
    return Optional.ofNullable(ledger.refusal(tier));
  }

  /**
   * Adds a hook to be called, one thread at a time and outside all locks, whenever shared memory is
   * full, so before an extent is taken from disk or refused, and before {@link #allocateDisk}
   * refuses one. It may free extents and must not allocate. It should be quick when it has nothing
   * to free.
   */
  public void onPressure(Runnable reclaim) {
    reclaims.add(reclaim);
  }

  /**
   * Hands out nothing any more: {@link #allocate} throws as if the arena were closed. Whoever frees
   * extents that others still read calls it first, so that nobody writes there.
   */
  public void refuse() {
    ledger.refuse();
  }

  /**
   * Deletes all files and unmaps the segments that nobody holds an extent of; the others are
   * unmapped when their last extent is freed. Extents still out are reported in the log and remain
   * in {@link #statistics}. Closing again does nothing.
   */
  @Override
  public void close() {
    List<Segment> segments = ledger.close();
    segments.forEach(supply::retire);
    supply.close(memory);
    supply.close(disk);
    supply.close(privateMemory);
    if (!segments.isEmpty()) {
      leakReport().ifPresent(LOG::warn);
    }
  }

  /** What is out, in one line; empty when nothing is. */
  Optional<String> leakReport() {
    ArenaStatistics now = statistics();
    if (now.extents() == 0) {
      return Optional.empty();
    }
    return Optional.of(
        "Arena "
            + options.folder()
            + " has "
            + now.extents()
            + " extents ("
            + Bytes.text(now.usedBytes())
            + ") that were not freed; the first: "
            + ledger.leaks());
  }
}
