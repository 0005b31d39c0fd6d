package io.weft.memory;

import io.weft.memory.ArenaOptions.PrivateMemory;
import io.weft.memory.ExtentLedger.Granules;
import io.weft.memory.SpillPolicy.Use;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.Consumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Memory of one process that other processes of the host can map. It consists of segments: files of
 * equal size, first in shared memory, then on disk. Each segment is filled with zeros and mapped
 * once, and reused until {@link #freeIdle} or {@link #close} deletes it.
 *
 * <p>{@link SpillPolicy} decides which memory an allocation takes. A tier first gives out free
 * memory, then a new segment, while its budget and the margin of the file system allow that. An
 * extent that is longer than a segment gets a segment of its own, which is deleted when the extent
 * is freed.
 *
 * <p>An arena with private memory ({@link ArenaOptions#privateMemory}) uses that instead of disk.
 * It then puts on disk only allocations for {@link Use#DISK}. This is for processes that must not
 * write plain text to a disk.
 *
 * <p>Thread-safe. Allocating and freeing hold one lock for a short, bounded time. Files are
 * created, mapped and deleted outside the lock, so only threads that need a new segment wait for
 * it. An extent belongs to its allocator until it is freed, also after close: a segment stays
 * mapped until its last extent is freed.
 */
public final class SharedArena implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(SharedArena.class);

  /**
   * With {@code -Dweft.memory.poison=true} freed memory is overwritten, so that tests notice reads
   * of it.
   */
  private static final boolean POISON = Boolean.getBoolean("weft.memory.poison");

  private static final byte POISONED = (byte) 0xDB;

  private final ArenaOptions options;
  private final Tier memory;
  private final Tier disk;

  private final Tier transientMemory;
  private final Tier retainedMemory;
  private final SpillPolicy policy;
  private final ExtentLedger ledger;
  private final SegmentSupply supply;
  private final FreedMemory freed = new FreedMemory();
  private final Waiters waiters = new Waiters();
  private final ReclaimHooks pressure = new ReclaimHooks(System::nanoTime);
  private final ExtentSearch search;
  private final List<Consumer<Duration>> idleHooks = new CopyOnWriteArrayList<>();

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
    this.transientMemory = privateTier("transient private memory", own.transientBytes(segment));
    this.retainedMemory = privateTier("retained private memory", own.retainedBytes(segment));
    this.policy = new SpillPolicy(memory, disk, transientMemory, retainedMemory, own);
    this.ledger = new ExtentLedger(memory, disk, transientMemory, retainedMemory);
    this.supply = new SegmentSupply(options.folder(), ledger);
    ExtentSource source = new ExtentSource(segment, ledger, supply);
    this.search = new ExtentSearch(memory, source, pressure, freed, waiters);
  }

  private static Tier privateTier(String name, long bytes) {
    return new Tier(MemoryKind.PRIVATE, name, bytes, new PrivateSegments());
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
   * Allocates memory with undefined contents.
   *
   * @param bytes 1 to 2^31 - 64
   * @param use decides which memory is taken and whether the thread waits for it, see {@link
   *     SpillPolicy}
   * @return an extent of that many bytes, rounded up to a multiple of 64
   * @throws ArenaFullException when there is no room, also after a wait; the arena is unchanged
   * @throws InterruptedIOException if the thread is interrupted while it waits, which only {@link
   *     Use#TRANSIENT} does; the thread stays interrupted
   * @throws IllegalStateException when the arena is closed
   */
  public Extent allocate(long bytes, Use use) throws ArenaFullException, InterruptedIOException {
    SpillPolicy.Plan plan = policy.plan(use, bytes);
    Extent extent = search.find(plan, Granules.covering(bytes));
    if (extent == null) {
      throw new ArenaFullException(noRoom(bytes, plan));
    }
    return extent;
  }

  /**
   * As {@link #allocate}, but returns null when there is no room. A full arena then costs no
   * exception, for callers that go on without the memory.
   *
   * @throws ArenaFullException when another thread takes too long to create a segment
   */
  public Extent tryAllocate(long bytes, Use use) throws ArenaFullException, InterruptedIOException {
    return search.find(policy.plan(use, bytes), Granules.covering(bytes));
  }

  /**
   * Allocates shared memory that fills a segment of its own, so that other processes can map it for
   * writing without access to other extents. It is deleted when the extent is freed.
   *
   * @param bytes 1 to 2^31 - 64
   * @throws ArenaFullException when there is no room, also after memory was reclaimed
   * @throws IllegalStateException when the arena is closed
   */
  public Extent allocateSegment(long bytes) throws ArenaFullException {
    Extent extent = search.findSegment(Granules.covering(bytes));
    if (extent == null) {
      throw new ArenaFullException(
          "no segment of "
              + Bytes.text(bytes)
              + ". "
              + ledger.describe()
              + ". Raise "
              + names().of("memoryBytes"));
    }
    return extent;
  }

  private String noRoom(long bytes, SpillPolicy.Plan plan) {
    double seconds = plan.timeout().toMillis() / 1000.0;
    return "no room for "
        + Bytes.text(bytes)
        + (plan.timeout().isZero() ? ". " : " within " + seconds + " s. ")
        + ledger.describe()
        + (plan.overflow() == disk
            ? ". Raise %s or %s, or make room in %s"
                .formatted(
                    names().of("memoryBytes"), names().of("diskBytes"), names().of("diskFolders"))
            : ". Raise %s or %s".formatted(names().of("memoryBytes"), names().of("privateMemory")));
  }

  /** The names of options in messages. */
  public SettingNames names() {
    return options.names();
  }

  /**
   * Shortens an extent.
   *
   * @param bytes how many of the first bytes to keep, 1 to the extent's length; rounded up to 64
   * @return the shortened extent, or the same object if nothing was cut off. The given extent must
   *     not be used any more if it is not the result.
   * @throws IllegalStateException when the extent is not allocated
   */
  public Extent trim(Extent extent, long bytes) {
    Extent kept = ledger.trim(extent, Granules.covering(bytes));
    boolean hasFile = extent.kind() != MemoryKind.PRIVATE;
    if (hasFile && extent.length() > options.segmentBytes() && kept.length() < extent.length()) {
      supply.shorten(kept);
    }
    wakeWaiters(extent);
    return kept;
  }

  /**
   * Frees an extent; its address must not be used any more.
   *
   * @param extent the object that {@link #allocate} or {@link #trim} returned
   * @throws IllegalStateException when the extent is not allocated, as after an earlier free
   */
  public void free(Extent extent) {
    if (POISON && ledger.isReusable(extent)) {
      Memory.setMemory(extent.address(), extent.length(), POISONED);
    }
    Segment unneeded = ledger.free(extent);
    if (unneeded != null) {
      supply.discard(unneeded);
    }
    wakeWaiters(extent);
  }

  private void wakeWaiters(Extent extent) {
    if (policy.endsWaits(extent.kind())) {
      freed.freed();
    }
  }

  /**
   * Takes over extents of another arena of this user, whose process has ended. Their segment gets a
   * second name, in this arena's folder, so its memory stays when the other folder is removed. It
   * is read-only, is never allocated again, and goes with its last extent.
   *
   * @param source the segment's name in the other arena's folder
   * @param ranges of the extents in it, at least one
   * @param exempt whether the segment does not count in this arena's budget; otherwise it counts,
   *     and may exceed it
   * @return the extents in the order of their ranges, for the caller to free
   * @throws IOException if the segment cannot be linked or mapped, is too short, or the adopted
   *     segments would exceed the budget on their own; nothing is left
   * @throws IllegalStateException when this arena is closed
   */
  public List<Extent> adopt(Path source, List<Range> ranges, boolean exempt) throws IOException {
    Tier tier = Files.isSymbolicLink(source) ? disk : memory;
    return supply.adopt(tier, source, ranges, exempt);
  }

  /**
   * A part of a segment.
   *
   * @param offset of the first byte, a multiple of 64
   * @param length in bytes, at least 1
   */
  public record Range(long offset, long length) {}

  /**
   * Deletes segments that were empty for the given time. A process that still maps such a file
   * keeps its memory until it unmaps it.
   */
  public void freeIdle(Duration idle) {
    idleHooks.forEach(hook -> hook.accept(idle));
    supply.deleteIdle(idle.toNanos());
  }

  /**
   * Sets the action that creates the folder again after another program has deleted it. It must
   * call {@link #abandonFiles} first. It runs before an allocation fails for want of the folder,
   * and in {@link #restoreFolder}.
   */
  public void onLostFolder(Runnable restore) {
    supply.onLostFolder(restore);
  }

  /** Creates the folder again if it was deleted. Returns whether it was missing. */
  public boolean restoreFolder() {
    return supply.restoreFolder();
  }

  /**
   * Gives up the names of all segments, because other processes cannot find them any more. Extents
   * stay valid until they are freed. Freed memory is not allocated again, so processes that have
   * mapped it read the same bytes as before.
   */
  public void abandonFiles() {
    supply.abandonFiles();
  }

  /**
   * Drops the pages of all files from this process, so that they do not count as its resident
   * memory. They are mapped again when they are used.
   */
  public void dropPages() {
    ledger.segments().forEach(segment -> segment.mapping.dropPages());
  }

  /**
   * The transient private memory in bytes that one task may hold while it asks for more; 0 for an
   * arena without private memory.
   */
  public long transientShare() {
    return policy.transientShare();
  }

  /** The name under which other processes of this user find a segment that has a file. */
  public Path segmentFile(int segment) {
    return supply.name(segment);
  }

  /**
   * A view of an extent's bytes, valid until the extent is freed. Big-endian, like every new
   * buffer.
   */
  public ByteBuffer view(Extent extent) {
    MappedSegment mapping = ledger.segment(extent.segment()).mapping;
    return mapping.slice(extent.offset(), (int) extent.length());
  }

  /** A consistent snapshot of the counters. */
  public ArenaStatistics statistics() {
    return ledger.statistics();
  }

  /**
   * The reason why the last segment of a kind was not created; empty while none was refused. For
   * private memory this is the transient part.
   */
  public Optional<String> refusal(MemoryKind kind) {
    Tier tier =
        switch (kind) {
          case SHARED_MEMORY -> memory;
          case DISK -> disk;
          case PRIVATE -> transientMemory;
        };
    return Optional.ofNullable(ledger.refusal(tier));
  }

  /** The actions that run before and while an allocation for {@link Use#TRANSIENT} waits. */
  public Waiters waiters() {
    return waiters;
  }

  /**
   * Adds a reclaim hook, which is called when shared memory is full, before an extent is taken from
   * another tier. {@link SpillPolicy} says how often. Hooks run on one thread at a time, outside
   * all locks. A hook may free extents and must not allocate. It must return quickly when it has
   * nothing to free.
   */
  public void onPressure(Runnable reclaim) {
    pressure.add(reclaim);
  }

  /**
   * Adds a hook, which {@link #freeIdle} calls with the time after which unused memory is freed. It
   * may free extents, and must neither block nor fail.
   */
  public void onIdle(Consumer<Duration> hook) {
    idleHooks.add(hook);
  }

  /**
   * Refuses all further allocations: {@link #allocate} throws as if the arena were closed. A caller
   * that frees extents which others still read calls this first, so that they are not overwritten.
   */
  public void refuse() {
    ledger.refuse();
    freed.freed();
  }

  /**
   * Deletes all files and unmaps the segments without extents. The other segments are unmapped when
   * their last extent is freed. Extents that are not freed yet are reported in the log and remain
   * in {@link #statistics}. Closing again does nothing.
   */
  @Override
  public void close() {
    List<Segment> segments = ledger.close();
    freed.freed();
    segments.forEach(supply::retire);
    supply.close(memory);
    supply.close(disk);
    supply.close(transientMemory);
    supply.close(retainedMemory);
    if (!segments.isEmpty()) {
      leakReport().ifPresent(LOG::warn);
    }
  }

  /** One line about the extents that are not freed; empty when there are none. */
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

  /** Segments without files, in memory of this process alone. Stateless. */
  static final class PrivateSegments implements SegmentFiles {
    @Override
    public MappedSegment create(Path name, long bytes) throws IOException {
      return MappedSegment.ofPrivateMemory(name, bytes);
    }

    @Override
    public MappedSegment adopt(Path name, Path source) throws IOException {
      throw new IOException("private memory of another process cannot be mapped: " + source);
    }

    @Override
    public void delete(Path name, MappedSegment segment) {
      // There is no file.
    }

    @Override
    public void close() {
      // Only segments were created.
    }
  }

  /** Creates segments in the arena's folder itself. */
  static final class FolderSegmentFiles implements SegmentFiles {
    private final SegmentFolder folder;

    FolderSegmentFiles(SegmentFolder folder) {
      this.folder = folder;
    }

    static FolderSegmentFiles of(ArenaOptions options, SegmentStorage storage) {
      return new FolderSegmentFiles(
          new SegmentFolder(options.folder(), options.marginBytes(), options.limit(), storage));
    }

    @Override
    public MappedSegment create(Path name, long bytes) throws IOException {
      return folder.attempt(bytes, storage -> storage.reserve(name, bytes));
    }

    @Override
    public MappedSegment adopt(Path name, Path source) throws IOException {
      Files.createLink(name, source);
      MappedSegment mapping = null;
      try {
        mapping = MappedSegment.attach(name);
        return mapping;
      } finally {
        if (mapping == null) {
          Files.deleteIfExists(name);
        }
      }
    }

    @Override
    public void delete(Path name, MappedSegment segment) throws IOException {
      Files.deleteIfExists(name);
    }

    @Override
    public void close() {}
  }
}
