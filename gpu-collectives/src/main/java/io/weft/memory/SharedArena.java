package io.weft.memory;

import java.io.IOException;
import java.io.InterruptedIOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
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
 * <p>An arena with private memory ({@link ArenaOptions#privateMemory}) puts that in the place of
 * the disk: what lies there was asked for by {@link #allocateDisk}. It is for those who may not
 * write as it is to a disk what others give them. Who gives it back in a moment asks by {@link
 * #allocateWorking} and may wait for others who do so too; everybody else has the other part of it.
 *
 * <p>Thread-safe. Allocating and freeing hold one lock for a short, bounded time; files are made,
 * mapped and deleted outside it, so only threads that need a new segment wait for one. An extent
 * belongs to its allocator until it is freed, also across close: a segment with extents out stays
 * mapped until the last of them is freed.
 */
public final class SharedArena implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(SharedArena.class);

  private final ArenaOptions options;
  private final Tier memory;
  private final Tier disk;

  /** The part of private memory that passes from hand to hand. */
  private final Tier working;

  /** The part of private memory that is held for long. */
  private final Tier lasting;

  /** What stands in for shared memory that is full. */
  private final Tier second;

  private final ExtentLedger ledger;
  private final SegmentSupply supply;
  private final FreedMemory freed = new FreedMemory();
  private final Waiters waiters = new Waiters();
  private final Pressure pressure = new Pressure(System::nanoTime);
  private final ExtentSearch search;

  private SharedArena(ArenaOptions options, SegmentStorage storage) {
    this.options = options;
    this.memory =
        new Tier(
            MemoryKind.SHARED_MEMORY,
            options.memoryBytes(),
            FolderSegmentFiles.of(options, storage));
    this.disk =
        new Tier(MemoryKind.DISK, options.diskBytes(), LinkedSegmentFiles.of(options, storage));
    long segment = options.segmentBytes();
    PrivateMemory own = options.privateMemory();
    this.working = privateTier("private memory for moments", own.workingBytes(segment));
    this.lasting = privateTier("private memory for long", own.lastingBytes(segment));
    this.second = hasPrivateMemory() ? lasting : disk;
    this.ledger = new ExtentLedger(memory, disk, working, lasting);
    this.supply = new SegmentSupply(options.folder(), ledger);
    ExtentSource source = new ExtentSource(segment, ledger, supply);
    this.search = new ExtentSearch(memory, source, pressure, freed, waiters);
  }

  private static Tier privateTier(String name, long bytes) {
    return new Tier(MemoryKind.PRIVATE, name, bytes, new PrivateSegments());
  }

  private boolean hasPrivateMemory() {
    return options.privateMemory().bytes() > 0;
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
   * Hands out memory with undefined contents, to be held as long as one likes.
   *
   * @param bytes 1 to 2^31 - 64
   * @return an extent of so many bytes, rounded up to a multiple of 64
   * @throws ArenaFullException when there is no room; the state is as before
   * @throws IllegalStateException when the arena is closed
   */
  public Extent allocate(long bytes) throws ArenaFullException {
    return required(search.find(second, Granules.covering(bytes)), bytes, second, Duration.ZERO);
  }

  /**
   * Hands out memory that its holder gives back in a moment, and before it waits for anything else
   * but more of it. Where there is none the calling thread gives back what it can ({@link
   * #waiters}) and waits until others have given some back, as long as {@link
   * PrivateMemory#patience} has it. Of an arena without private memory it is that of {@link
   * #allocate}.
   *
   * @param bytes 1 to 2^31 - 64
   * @return as of {@link #allocate}
   * @throws ArenaFullException when there was no room all that time, or there never can be
   * @throws InterruptedIOException if the thread is interrupted meanwhile, which it stays
   * @throws IllegalStateException when the arena is closed
   */
  public Extent allocateWorking(long bytes) throws ArenaFullException, InterruptedIOException {
    if (!hasPrivateMemory()) {
      return allocate(bytes);
    }
    boolean possible = bytes <= Math.max(memory.budgetBytes, working.budgetBytes);
    Duration patience = possible ? options.privateMemory().patience() : Duration.ZERO;
    Extent extent = search.await(working, Granules.covering(bytes), patience);
    return required(extent, bytes, working, patience);
  }

  /**
   * As {@link #allocateWorking}, but does not wait.
   *
   * @throws ArenaFullException when there is no room at the moment
   */
  public Extent allocateWorkingNow(long bytes) throws ArenaFullException {
    return hasPrivateMemory()
        ? required(search.glance(working, Granules.covering(bytes)), bytes, working, Duration.ZERO)
        : allocate(bytes);
  }

  private Extent required(Extent extent, long bytes, Tier tier, Duration waited)
      throws ArenaFullException {
    if (extent != null) {
      return extent;
    }
    throw new ArenaFullException(
        "no room for "
            + Bytes.text(bytes)
            + (waited.isZero() ? ". " : " within " + waited.toMillis() / 1000.0 + " s. ")
            + ledger.describe()
            + (tier == disk
                ? ". Raise %s or %s, or make room in %s"
                    .formatted(
                        names().of("memoryBytes"),
                        names().of("diskBytes"),
                        names().of("diskFolders"))
                : ". Raise %s or %s"
                    .formatted(names().of("memoryBytes"), names().of("privateMemory"))));
  }

  /** The names of options in messages. */
  public SettingNames names() {
    return options.names();
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
    return hasPrivateMemory() ? allocateShared(bytes) : allocate(bytes);
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
    return required(search.findDisk(disk, Granules.covering(bytes)), bytes, disk, Duration.ZERO);
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
    return search.take(memory, Granules.covering(bytes));
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
    tellOfFreed(extent);
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
    tellOfFreed(extent);
  }

  private void tellOfFreed(Extent extent) {
    if (hasPrivateMemory() && extent.kind() != MemoryKind.DISK) {
      freed.freed();
    }
  }

  /**
   * Gives disk and private memory back: deletes their segments that nothing was in for so long.
   * Shared memory is kept, because reusing it is what makes it fast.
   */
  public void freeIdle(Duration idle) {
    supply.deleteIdle(disk, idle.toNanos());
    supply.deleteIdle(working, idle.toNanos());
    supply.deleteIdle(lasting, idle.toNanos());
  }

  /**
   * What each of its users should have at most of the private memory for moments while it asks for
   * more of it, so that half is left for those who need one piece; 0 of an arena without.
   */
  public long workingShare() {
    return working.budgetBytes / 2 / options.privateMemory().users();
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

  /**
   * Why the last segment of a kind was not made; empty while none was refused. Of private memory,
   * that for moments.
   */
  public Optional<String> refusal(MemoryKind kind) {
    Tier tier =
        switch (kind) {
          case SHARED_MEMORY -> memory;
          case DISK -> disk;
          case PRIVATE -> working;
        };
    return Optional.ofNullable(ledger.refusal(tier));
  }

  /** What is done before and while {@link #allocateWorking} waits. */
  public Waiters waiters() {
    return waiters;
  }

  /**
   * Adds a hook to be called, one thread at a time and outside all locks, when shared memory is
   * full, so before an extent is taken from disk. As long as that was of no use it is called once a
   * second at most, and before an extent is refused by others than {@link #allocateWorkingNow}. It
   * may free extents and must not allocate. It should be quick when it has nothing to free.
   */
  public void onPressure(Runnable reclaim) {
    pressure.add(reclaim);
  }

  /**
   * Hands out nothing any more: {@link #allocate} throws as if the arena were closed. Whoever frees
   * extents that others still read calls it first, so that nobody writes there.
   */
  public void refuse() {
    ledger.refuse();
    freed.freed();
  }

  /**
   * Deletes all files and unmaps the segments that nobody holds an extent of; the others are
   * unmapped when their last extent is freed. Extents still out are reported in the log and remain
   * in {@link #statistics}. Closing again does nothing.
   */
  @Override
  public void close() {
    List<Segment> segments = ledger.close();
    freed.freed();
    segments.forEach(supply::retire);
    supply.close(memory);
    supply.close(disk);
    supply.close(working);
    supply.close(lasting);
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
