package io.weft.device.cuda;

import java.util.Map;
import java.util.NavigableMap;
import java.util.Optional;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.atomic.AtomicBoolean;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A lease on a whole segment of a {@link CudaMemoryPool} for another process of the host. That
 * process maps the segment once, and then copies memory of any owner out of it. The pool does not
 * free the segment before the lease is closed, but reuses memory in it: the lease does not protect
 * contents. Close it when the other process has unmapped the segment or has ended. Thread-safe.
 */
public final class IpcSegment implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(IpcSegment.class);

  /** The segments of all pools of {@link CudaMemoryPool.Kind#DEVICE}, by their addresses. */
  private static final NavigableMap<Long, Place> PLACES = new ConcurrentSkipListMap<>();

  private final Place place;
  private final IpcHandle handle;
  private final AtomicBoolean closed = new AtomicBoolean();

  private record Place(CudaMemoryPool pool, PoolSegment segment) {}

  private IpcSegment(Place place, IpcHandle handle) {
    this.place = place;
    this.handle = handle;
  }

  static void add(CudaMemoryPool pool, PoolSegment segment) {
    PLACES.put(segment.address(), new Place(pool, segment));
  }

  static void remove(PoolSegment segment) {
    PLACES.remove(segment.address());
  }

  /**
   * Leases the segment around memory that is in use.
   *
   * @param bytes 1 or more
   * @return empty if the memory is of no pool of device memory, if the pool has lent too much, or
   *     if the driver does not export it
   */
  public static Optional<IpcSegment> around(long address, long bytes) {
    Map.Entry<Long, Place> before = PLACES.floorEntry(address);
    if (before == null) {
      return Optional.empty();
    }
    Place place = before.getValue();
    if (bytes > place.segment.bytes() - (address - before.getKey())
        || !place.pool.lend(place.segment)) {
      return Optional.empty();
    }
    try {
      IpcHandle handle =
          IpcExport.handle(place.pool.device(), before.getKey(), place.segment.bytes());
      return Optional.of(new IpcSegment(place, handle));
    } catch (CudaException e) {
      LOG.debug("{} does not export a segment", place.pool.device(), e);
      place.pool.endLoan(place.segment);
      return Optional.empty();
    }
  }

  /** The handle to send to the other process. */
  public IpcHandle handle() {
    return handle;
  }

  /** The address of its first byte in this process. */
  public long address() {
    return place.segment.address();
  }

  /** Whether this memory is within the segment. */
  public boolean covers(long address, long bytes) {
    long offset = address - address();
    return offset >= 0 && offset < handle.bytes() && bytes <= handle.bytes() - offset;
  }

  /** Whether the pool needs the segment's memory elsewhere, so that the lease should end soon. */
  public boolean isWantedBack() {
    return place.pool.wants(place.segment);
  }

  /** Ends the lease. Idempotent. */
  @Override
  public void close() {
    if (closed.compareAndSet(false, true)) {
      place.pool.endLoan(place.segment);
    }
  }
}
