package io.weft.device.cuda;

import io.weft.device.Deadline;
import io.weft.memory.Bytes;
import io.weft.memory.OffsetLedger;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A pool of device memory or pinned host memory, because each allocation by the driver stops the
 * whole device. Memory is taken from segments, first fit, and free neighbours are joined, so an
 * empty segment is one run again. Segments stay until the pool is closed, or another size needs
 * their budget, and while they are lent to other processes. Thread-safe.
 */
public final class CudaMemoryPool implements AutoCloseable {
  /** The kinds of memory that the driver itself allocates. */
  public enum Kind implements CudaMemorySource {
    DEVICE("device memory"),
    /** Host memory that the device can copy without the processor. */
    PINNED("pinned host memory");

    private final String what;

    Kind(String what) {
      this.what = what;
    }

    @Override
    public String what() {
      return what;
    }

    @Override
    public long granularity() {
      return ALIGNMENT;
    }

    @Override
    public long allocate(CudaDevice device, long bytes) {
      return DriverMemory.allocate(device, bytes, this);
    }

    @Override
    public void free(CudaDevice device, long address, long bytes) {
      DriverMemory.free(device, address, this);
    }
  }

  private static final Logger LOG = LoggerFactory.getLogger(CudaMemoryPool.class);
  private static final long ALIGNMENT = 512;
  private static final long SMALLEST_SEGMENT = 2L << 20;
  private static final long LARGEST_GROWTH = 64L << 20;
  private static final long LARGEST_BYTES = 1L << 40;

  /** How long an allocation waits for segments that other threads free. */
  private static final Duration FREEING_TIMEOUT = Duration.ofSeconds(2);

  private final CudaDevice device;
  private final CudaMemorySource source;
  private final long budgetBytes;
  private final List<PoolSegment> segments = new ArrayList<>();

  /** The bytes of existing segments and of segments that are being allocated. */
  private long reservedBytes;

  /** The bytes of segments that the source has not freed yet. */
  private long freeingBytes;

  private long lentBytes;
  private long takenBytes;
  private long allocations;
  private long allocatedBytes;
  private boolean closed;

  private CudaMemoryPool(CudaDevice device, CudaMemorySource source, long budgetBytes) {
    this.device = device;
    this.source = source;
    this.budgetBytes = budgetBytes;
  }

  /**
   * Opens an empty pool.
   *
   * @param source the memory, such as {@link Kind#DEVICE}
   * @param budgetBytes the most bytes that it allocates
   */
  public static CudaMemoryPool open(CudaDevice device, CudaMemorySource source, long budgetBytes) {
    return new CudaMemoryPool(device, source, budgetBytes);
  }

  /**
   * Takes memory with undefined contents, aligned to 512 bytes.
   *
   * @param bytes one or more
   * @throws CudaException when the driver has no more memory
   * @throws NoRoomException when the budget is used up
   * @throws IllegalStateException when the pool was closed
   */
  public CudaMemory take(long bytes) {
    if (bytes < 1 || bytes > LARGEST_BYTES) {
      throw new IllegalArgumentException(bytes + " bytes are not 1 to " + LARGEST_BYTES);
    }
    CudaMemory there = takeThere(bytes);
    return there == null ? takeNew(bytes) : there;
  }

  private static long rounded(long bytes, long unit) {
    return (bytes + unit - 1) & -unit;
  }

  private synchronized CudaMemory takeThere(long bytes) {
    requireOpen();
    for (PoolSegment segment : segments) {
      CudaMemory memory = takeFrom(segment, bytes);
      if (memory != null) {
        return memory;
      }
    }
    return null;
  }

  private void requireOpen() {
    if (closed) {
      throw new IllegalStateException(
          "the pool of " + source.what() + " of " + device + " was closed");
    }
  }

  private CudaMemory takeFrom(PoolSegment segment, long bytes) {
    long length = rounded(bytes, ALIGNMENT);
    long offset = segment.take(length);
    if (offset == OffsetLedger.NONE) {
      return null;
    }
    takenBytes += length;
    return new CudaMemory(this, segment, offset, bytes);
  }

  /** Calls the driver without holding the monitor, because the driver may wait for running work. */
  private CudaMemory takeNew(long bytes) {
    long least = rounded(bytes, Math.max(ALIGNMENT, source.granularity()));
    List<PoolSegment> evicted = new ArrayList<>();
    long claimed = claim(least, evicted);
    evicted.forEach(this::release);
    long length = awaitFreed(claimed, least);
    PoolSegment segment = allocate(length, least);
    synchronized (this) {
      if (!closed) {
        segments.add(segment);
        if (source == Kind.DEVICE) {
          IpcSegment.add(this, segment);
        }
        allocations++;
        allocatedBytes += segment.bytes();
        return takeFrom(segment, bytes);
      }
      retire(segment);
    }
    release(segment);
    throw new IllegalStateException(
        "the pool of " + source.what() + " of " + device + " was closed meanwhile");
  }

  /** Reserves budget, more than the least if there is room; unused segments may be evicted. */
  private synchronized long claim(long least, List<PoolSegment> evicted) {
    requireOpen();
    if (least > budgetBytes - reservedBytes) {
      evict(least, evicted);
    }
    long wanted = Math.max(SMALLEST_SEGMENT, Math.min(reservedBytes, LARGEST_GROWTH));
    long unit = source.granularity();
    long room = (budgetBytes - reservedBytes) & -unit;
    long length = Math.max(least, Math.min(rounded(wanted, unit), room));
    reservedBytes += length;
    return length;
  }

  private void evict(long least, List<PoolSegment> evicted) {
    long room = budgetBytes - reservedBytes;
    for (PoolSegment segment : segments) {
      if (segment.isUnused() && room < least) {
        if (segment.isLent()) {
          segment.wantBack();
        } else {
          evicted.add(segment);
          room += segment.bytes();
        }
      }
    }
    if (room < least) {
      evicted.clear();
      throw new NoRoomException(
          ("%s more of %s of %s exceed the budget of %s, of which %s are taken and %s allocated,"
                  + " %s of these lent to other processes")
              .formatted(
                  Bytes.text(least),
                  source.what(),
                  device,
                  Bytes.text(budgetBytes),
                  Bytes.text(takenBytes),
                  Bytes.text(reservedBytes),
                  Bytes.text(lentBytes)),
          null);
    }
    segments.removeAll(evicted);
    evicted.forEach(this::retire);
  }

  /** Counts a segment as being freed. The caller holds the monitor. */
  private void retire(PoolSegment segment) {
    reservedBytes -= segment.bytes();
    freeingBytes += segment.bytes();
  }

  /**
   * Waits until evicted segments are free, which other threads may have evicted, so that memory
   * does not exist twice. A claim of more than the least does not wait: it shrinks.
   *
   * @return the claim that remains
   */
  private synchronized long awaitFreed(long claimed, long least) {
    Deadline deadline = Deadline.after(FREEING_TIMEOUT);
    long length = claimed;
    try {
      while (reservedBytes + freeingBytes > budgetBytes) {
        long excess = reservedBytes + freeingBytes - budgetBytes;
        if (length > least) {
          long fitting = Math.max(least, (length - excess) & -source.granularity());
          unclaim(length - fitting);
          length = fitting;
        } else if (deadline.expired()) {
          throw stillFreeing(deadline.toString());
        } else {
          TimeUnit.NANOSECONDS.timedWait(this, Math.max(1, deadline.remainingNanos()));
        }
      }
      return length;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      unclaim(length);
      throw stillFreeing("the time until the thread was interrupted");
    } catch (NoRoomException e) {
      unclaim(length);
      throw e;
    }
  }

  private NoRoomException stillFreeing(String time) {
    return new NoRoomException(
        "%s of %s of %s were given up, and the driver did not free them within %s"
            .formatted(Bytes.text(freeingBytes), source.what(), device, time),
        null);
  }

  /** Allocates a segment; if the driver has less memory, only the least length. */
  private PoolSegment allocate(long length, long least) {
    try {
      return new PoolSegment(source.allocate(device, length), length);
    } catch (RuntimeException e) {
      unclaim(length - least);
      if (length == least) {
        unclaim(least);
        throw e;
      }
    }
    try {
      return new PoolSegment(source.allocate(device, least), least);
    } catch (RuntimeException e) {
      unclaim(least);
      throw e;
    }
  }

  private synchronized void unclaim(long bytes) {
    reservedBytes -= bytes;
    notifyAll();
  }

  /** Returns memory; also after the close, for memory that was in use then. */
  void giveBack(PoolSegment segment, long offset, long bytes) {
    long length = rounded(bytes, ALIGNMENT);
    synchronized (this) {
      segment.give(offset, length);
      takenBytes -= length;
      if (!endsNow(segment)) {
        return;
      }
    }
    release(segment);
  }

  /** Whether a segment of a closed pool has no users any more. The caller holds the monitor. */
  private boolean endsNow(PoolSegment segment) {
    if (!closed || !segment.isUnused() || segment.isLent()) {
      return false;
    }
    segments.remove(segment);
    retire(segment);
    return true;
  }

  /**
   * Lends a segment with taken memory to another process. A quarter of the budget is never lent:
   * lent segments cannot be evicted.
   *
   * @return false if the segment is unused, or too much would be lent
   */
  synchronized boolean lend(PoolSegment segment) {
    if (closed || segment.isUnused()) {
      return false;
    }
    if (!segment.isLent()) {
      if (segment.bytes() > budgetBytes - budgetBytes / 4 - lentBytes) {
        return false;
      }
      lentBytes += segment.bytes();
    }
    segment.lend();
    return true;
  }

  /** Ends a loan; also after the close. */
  void endLoan(PoolSegment segment) {
    synchronized (this) {
      segment.endLoan();
      lentBytes -= segment.isLent() ? 0 : segment.bytes();
      if (!endsNow(segment)) {
        return;
      }
    }
    release(segment);
  }

  /** Whether a lent segment is to be returned. */
  synchronized boolean wants(PoolSegment segment) {
    return closed || segment.isWantedBack();
  }

  private void release(PoolSegment segment) {
    if (source == Kind.DEVICE) {
      IpcSegment.remove(segment);
    }
    try {
      source.free(device, segment.address(), segment.bytes());
    } catch (RuntimeException e) {
      LOG.warn("{}: {} is left to the driver", device, Bytes.text(segment.bytes()), e);
    } finally {
      freed(segment);
    }
  }

  private synchronized void freed(PoolSegment segment) {
    freeingBytes -= segment.bytes();
    notifyAll();
  }

  /** Frees unused segments; the driver may wait for running work. */
  public void trim() {
    List<PoolSegment> unused = new ArrayList<>();
    synchronized (this) {
      takeUnused(unused);
    }
    unused.forEach(this::release);
  }

  private void takeUnused(List<PoolSegment> unused) {
    for (PoolSegment segment : segments) {
      if (segment.isUnused() && segment.isLent()) {
        segment.wantBack();
      } else if (segment.isUnused()) {
        unused.add(segment);
        retire(segment);
      }
    }
    segments.removeAll(unused);
  }

  /** Allocated bytes, taken or not, with those that are being freed. */
  public synchronized long reservedBytes() {
    return reservedBytes + freeingBytes;
  }

  /** The bytes of segments that other processes may have mapped. */
  public synchronized long lentBytes() {
    return lentBytes;
  }

  /** Taken bytes, each piece rounded up to 512. */
  public synchronized long takenBytes() {
    return takenBytes;
  }

  /** The number of allocations by the driver, which are needed when no segment has room. */
  public synchronized long allocations() {
    return allocations;
  }

  /** The bytes of all these allocations, also of those that were freed. */
  public synchronized long allocatedBytes() {
    return allocatedBytes;
  }

  /** The most bytes that the pool allocates. */
  public long budgetBytes() {
    return budgetBytes;
  }

  public CudaDevice device() {
    return device;
  }

  public CudaMemorySource source() {
    return source;
  }

  /** Frees unused segments now, and the others when their last memory and loan is returned. */
  @Override
  public void close() {
    List<PoolSegment> unused = new ArrayList<>();
    synchronized (this) {
      if (closed) {
        return;
      }
      closed = true;
      takeUnused(unused);
      if (takenBytes > 0) {
        LOG.warn(
            "{}: {} of {} are still taken at the close",
            device,
            Bytes.text(takenBytes),
            source.what());
      }
    }
    unused.forEach(this::release);
  }
}
