package io.weft.device.cuda;

import io.weft.device.Event;
import io.weft.memory.Extent;
import io.weft.memory.MemoryKind;
import java.util.Optional;

/**
 * Memory that is on the device while there is room, and spills to the host otherwise. A {@link
 * TieredLease} keeps it on the device. Thread-safe.
 */
public final class TieredMemory implements AutoCloseable {
  private final DeviceTiers tiers;
  private final long bytes;
  private CudaMemory onDevice;
  private CudaMemory pinned;
  private Extent extent;

  /** The checksum of the bytes on disk. */
  private int checksum;

  /** Whether the bytes on disk were compared with the checksum. */
  private boolean verified;

  private int leases;

  /** The number of readers that accept any tier. */
  private int holds;

  private long lastUse;
  private boolean moving;
  private boolean closed;

  TieredMemory(DeviceTiers tiers, CudaMemory onDevice) {
    this.tiers = tiers;
    this.bytes = onDevice.bytes();
    this.onDevice = onDevice;
    this.lastUse = System.nanoTime();
  }

  /** Creates memory that is in the arena. */
  TieredMemory(DeviceTiers tiers, Extent extent, long bytes) {
    this.tiers = tiers;
    this.bytes = bytes;
    this.extent = extent;
    this.lastUse = System.nanoTime();
  }

  public long bytes() {
    return bytes;
  }

  /** The current tier. */
  public synchronized MemoryTier tier() {
    if (onDevice != null) {
      return MemoryTier.DEVICE;
    }
    if (pinned != null) {
      return MemoryTier.PINNED;
    }
    return extent != null && extent.kind() == MemoryKind.DISK
        ? MemoryTier.DISK
        : MemoryTier.SHARED_MEMORY;
  }

  /**
   * Moves the memory to the device, if necessary, and keeps it there.
   *
   * @throws NoRoomException when all other memory on the device is leased
   * @throws IllegalStateException when it was closed
   * @throws CudaException when the device fails
   */
  public TieredLease lease() {
    TieredLease there = leaseOnDevice();
    return there == null ? tiers.load(this) : there;
  }

  /**
   * Keeps the memory on the device if it is there. Memory on the host does not move.
   *
   * @throws IllegalStateException when it was closed
   */
  public Optional<TieredLease> leaseIfOnDevice() {
    return Optional.ofNullable(leaseOnDevice());
  }

  /**
   * Copies a range to the host, from any tier, without using room on the device.
   *
   * @param offset the offset of the first byte
   * @param to an address on the host, whose memory must stay until the event is released
   * @return complete when the bytes are copied; failed when it was closed, or the bytes on disk
   *     have changed
   */
  public Event read(long offset, long length, long to) {
    if (offset < 0 || length < 0 || length > bytes - offset) {
      throw new IllegalArgumentException(
          length + " bytes from " + offset + " are not within " + bytes);
    }
    return tiers.read(this, offset, length, to);
  }

  /**
   * Keeps the memory in any tier, also after it is closed.
   *
   * @throws IllegalStateException when it was closed
   */
  public synchronized TieredHold hold() {
    requireOpen();
    holds++;
    return new TieredHold(tiers, this);
  }

  private void requireOpen() {
    if (closed) {
      throw new IllegalStateException("memory of " + bytes + " bytes of " + tiers + " was closed");
    }
  }

  /** Returns null if the memory must be moved first. */
  synchronized TieredLease leaseOnDevice() {
    requireOpen();
    if (onDevice == null || moving) {
      return null;
    }
    retain();
    return new TieredLease(this, onDevice.address());
  }

  synchronized void retain() {
    leases++;
    lastUse = System.nanoTime();
  }

  void release() {
    boolean last;
    synchronized (this) {
      leases--;
      last = isFree();
    }
    if (last) {
      tiers.free(this);
    }
  }

  void endHold() {
    boolean last;
    synchronized (this) {
      holds--;
      last = isFree();
    }
    if (last) {
      tiers.free(this);
    }
  }

  private boolean isFree() {
    return closed && leases == 0 && holds == 0;
  }

  /** The time in nanoseconds since the last use; -1 if it cannot move now. */
  synchronized long idleNanos() {
    return onDevice == null || leases > 0 || moving ? -1 : System.nanoTime() - lastUse;
  }

  /** Starts to move it off the device; null when it is in use. */
  synchronized CudaMemory startSpill() {
    if (onDevice == null || leases > 0) {
      return null;
    }
    moving = true;
    return onDevice;
  }

  /** Ends a move to one of the two; with neither, the memory stays on the device. */
  void endSpill(CudaMemory toPinned, Extent toExtent) {
    CudaMemory left = null;
    synchronized (this) {
      moving = false;
      if (toPinned != null || toExtent != null) {
        left = onDevice;
        onDevice = null;
        pinned = toPinned;
        extent = toExtent;
      }
    }
    if (left != null) {
      left.close();
    }
  }

  /** Removes and returns the memory on the device; null when it is elsewhere. */
  synchronized CudaMemory takeOnDevice() {
    CudaMemory there = onDevice;
    onDevice = null;
    return there;
  }

  /** The memory on the device; null when it is elsewhere. */
  synchronized CudaMemory onDevice() {
    return onDevice;
  }

  synchronized CudaMemory pinned() {
    return pinned;
  }

  synchronized Extent extent() {
    return extent;
  }

  /** The CRC32C of the extent's content, if that is on disk. */
  synchronized int checksum() {
    return checksum;
  }

  synchronized void checksum(int ofExtent) {
    checksum = ofExtent;
    verified = false;
  }

  synchronized boolean isVerified() {
    return verified;
  }

  synchronized void verified() {
    verified = true;
  }

  synchronized boolean isClosed() {
    return closed;
  }

  /** Records that it is on the device again; the caller frees its earlier place. */
  synchronized void loaded(CudaMemory there) {
    onDevice = there;
    pinned = null;
    extent = null;
  }

  /** Frees the memory when its last lease and hold have ended. */
  @Override
  public void close() {
    synchronized (this) {
      if (closed) {
        return;
      }
      closed = true;
      if (!isFree()) {
        return;
      }
    }
    tiers.free(this);
  }
}
