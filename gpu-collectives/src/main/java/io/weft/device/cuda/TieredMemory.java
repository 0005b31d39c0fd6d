package io.weft.device.cuda;

import io.weft.device.Event;
import io.weft.memory.Extent;
import io.weft.memory.MemoryKind;
import java.util.Optional;

/**
 * Bytes that lie on the device while there is room, and give way to others when there is not. They
 * are used under a {@link TieredLease}, during which they stay on the device. Thread-safe.
 */
public final class TieredMemory implements AutoCloseable {
  private final DeviceTiers tiers;
  private final long bytes;
  private CudaMemory onDevice;
  private CudaMemory pinned;
  private Extent extent;

  /** Of what lies on disk. */
  private int checksum;

  /** Whether what lies on disk was held against it since it came there. */
  private boolean verified;

  private int leases;

  /** Of those who read it wherever it lies. */
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

  /** Bytes in the arena. */
  TieredMemory(DeviceTiers tiers, Extent extent, long bytes) {
    this.tiers = tiers;
    this.bytes = bytes;
    this.extent = extent;
    this.lastUse = System.nanoTime();
  }

  public long bytes() {
    return bytes;
  }

  /** Where it lies at the moment. */
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
   * Brings it to the device, where it is not there, and keeps it there.
   *
   * @throws NoRoomException when everything else on the device is leased
   * @throws IllegalStateException when it was closed
   * @throws CudaException when the device fails
   */
  public TieredLease lease() {
    TieredLease there = leaseThere();
    return there == null ? tiers.load(this) : there;
  }

  /**
   * Keeps it on the device, if it lies there; where it lies on the host it stays there.
   *
   * @throws IllegalStateException when it was closed
   */
  public Optional<TieredLease> leaseIfThere() {
    return Optional.ofNullable(leaseThere());
  }

  /**
   * Copies some of it to the host, from wherever it lies, which needs no room on the device.
   *
   * @param offset of the first byte
   * @param to address on the host, which has to stay until the event is released
   * @return complete when the bytes are there; failed when it was closed, or what lies on disk is
   *     not what was written
   */
  public Event read(long offset, long length, long to) {
    if (offset < 0 || length < 0 || length > bytes - offset) {
      throw new IllegalArgumentException(
          length + " bytes from " + offset + " are not within " + bytes);
    }
    return tiers.read(this, offset, length, to);
  }

  /**
   * Keeps it, wherever it lies, also when it is closed.
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

  /** Null where it has to be brought first. */
  synchronized TieredLease leaseThere() {
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

  /** Whether it could give way; then how long ago it was used last, in nanoseconds. */
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

  /** It lies in one of both now; with neither it stays where it was. */
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

  /** What it has on the device, for the last time; null when it lies elsewhere. */
  synchronized CudaMemory takeOnDevice() {
    CudaMemory there = onDevice;
    onDevice = null;
    return there;
  }

  /** What it has on the device; null when it lies elsewhere. */
  synchronized CudaMemory onDevice() {
    return onDevice;
  }

  synchronized CudaMemory pinned() {
    return pinned;
  }

  synchronized Extent extent() {
    return extent;
  }

  /** CRC32C of what was written to the extent, where that is on disk. */
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

  /** It is on the device again; where it lay before is free. */
  synchronized void loaded(CudaMemory there) {
    onDevice = there;
    pinned = null;
    extent = null;
  }

  /** Gives it back when its last lease and hold have ended. */
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
