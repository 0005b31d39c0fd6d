package io.weft.device.cuda;

import io.weft.device.Deadline;
import io.weft.device.EventTimeoutException;
import io.weft.device.Lane.Priority;
import io.weft.device.cuda.CudaEvent.CudaMark;
import io.weft.memory.ArenaFullException;
import io.weft.memory.Extent;
import io.weft.memory.Memory;
import io.weft.memory.MemoryKind;
import io.weft.memory.SharedArena;
import io.weft.memory.SpillPolicy;
import java.io.InterruptedIOException;
import java.time.Duration;
import java.util.concurrent.locks.LockSupport;
import java.util.zip.CRC32C;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Moves memory between the device and the host. Confined to the tiers' thread. */
final class TierMoves {
  private static final Logger LOG = LoggerFactory.getLogger(TierMoves.class);
  private static final long POLL_NANOS = 20_000;
  private static final long BOUNCE_BYTES = 1L << 20;
  private static final int BOUNCE_BUFFERS = 2;

  private final CudaStream stream;
  private final CudaMemoryPool pinned;
  private final CudaMemoryPool bouncing;
  private final BounceBuffers bounce;
  private final SharedArena arena;
  private final Duration timeout;
  private RuntimeException broken;

  private TierMoves(
      CudaStream stream,
      CudaMemoryPool pinned,
      CudaMemoryPool bouncing,
      SharedArena arena,
      Duration timeout) {
    this.stream = stream;
    this.pinned = pinned;
    this.bouncing = bouncing;
    this.bounce = new BounceBuffers(stream, bouncing, BOUNCE_BYTES);
    this.arena = arena;
    this.timeout = timeout;
  }

  static TierMoves open(
      CudaDevice gpu, String name, long pinnedBytes, SharedArena arena, Duration timeout) {
    long bounceBytes = BOUNCE_BUFFERS * BOUNCE_BYTES;
    if (pinnedBytes < bounceBytes) {
      throw new IllegalArgumentException(
          "pinnedBytes is " + pinnedBytes + "; copies alone take " + bounceBytes);
    }
    CudaMemoryPool.Kind kind = CudaMemoryPool.Kind.PINNED;
    return new TierMoves(
        CudaStream.open(gpu, name, Priority.HIGHEST),
        CudaMemoryPool.open(gpu, kind, pinnedBytes - bounceBytes),
        CudaMemoryPool.open(gpu, kind, bounceBytes),
        arena,
        timeout);
  }

  /**
   * Moves memory off the device.
   *
   * @return false when it is in use
   */
  boolean spill(TieredMemory memory) {
    requireWorking();
    CudaMemory from = memory.startSpill();
    if (from == null) {
      return false;
    }
    CudaMemory toPinned = null;
    Extent toExtent = null;
    try {
      toPinned = takePinned(memory.bytes());
      toExtent = toPinned == null ? takeExtent(memory.bytes()) : null;
    } catch (RuntimeException e) {
      memory.endSpill(null, null);
      throw e;
    }
    long to = toPinned == null ? toExtent.address() : toPinned.address();
    copied(() -> bounce.copyToHost(to, from.address(), memory.bytes(), this::await));
    if (isOnDisk(toExtent)) {
      memory.checksum(checksum(toExtent, memory.bytes()));
    }
    memory.endSpill(toPinned, toExtent);
    return true;
  }

  /** Stores the checksum of memory that is on disk. */
  static void sign(TieredMemory memory) {
    if (isOnDisk(memory.extent())) {
      memory.checksum(checksum(memory.extent(), memory.bytes()));
    }
  }

  /** Copies memory of any tier to the arena; the memory does not move. */
  HostCopy copy(TieredMemory memory) {
    requireWorking();
    Extent to = takeExtent(memory.bytes());
    try {
      copy(memory, to);
    } catch (RuntimeException e) {
      if (broken == null) {
        arena.free(to);
      }
      throw e;
    }
    return new HostCopy(arena, to, memory.bytes());
  }

  private void copy(TieredMemory memory, Extent to) {
    CudaMemory onDevice = memory.onDevice();
    if (onDevice != null) {
      copied(
          () -> bounce.copyToHost(to.address(), onDevice.address(), memory.bytes(), this::await));
      return;
    }
    CudaMemory fromPinned = memory.pinned();
    verify(memory, memory.extent());
    long from = fromPinned == null ? memory.extent().address() : fromPinned.address();
    Memory.copy(from, to.address(), memory.bytes());
  }

  /** Copies a range to the host; the memory does not move. */
  void read(TieredMemory memory, long offset, long length, long to) {
    if (memory.isClosed()) {
      throw new IllegalStateException("memory of " + memory.bytes() + " bytes was closed");
    }
    CudaMemory onDevice = memory.onDevice();
    if (onDevice != null) {
      requireWorking();
      long from = onDevice.address() + offset;
      copied(() -> bounce.copyToHost(to, from, length, this::await));
      return;
    }
    CudaMemory fromPinned = memory.pinned();
    Extent fromExtent = memory.extent();
    if (!memory.isVerified()) {
      verify(memory, fromExtent);
      memory.verified();
    }
    long from = fromPinned == null ? fromExtent.address() : fromPinned.address();
    Memory.copy(from + offset, to, length);
  }

  private static boolean isOnDisk(Extent extent) {
    return extent != null && extent.kind() == MemoryKind.DISK;
  }

  private static int checksum(Extent extent, long bytes) {
    CRC32C sum = new CRC32C();
    sum.update(Memory.view(null, extent.address(), Math.toIntExact(bytes)));
    return (int) sum.getValue();
  }

  /** Checks that bytes from disk are unchanged. */
  private static void verify(TieredMemory memory, Extent from) {
    if (isOnDisk(from) && checksum(from, memory.bytes()) != memory.checksum()) {
      throw new IllegalStateException(
          memory.bytes() + " bytes that were spilled to disk have a different checksum now");
    }
  }

  private CudaMemory takePinned(long bytes) {
    try {
      return pinned.take(bytes);
    } catch (IllegalStateException | CudaException e) {
      LOG.debug("{}: no pinned memory for {} bytes: {}", stream, bytes, e.getMessage());
      return null;
    }
  }

  private Extent takeExtent(long bytes) {
    try {
      return arena.allocate(bytes, SpillPolicy.DEVICE_SPILL);
    } catch (ArenaFullException | InterruptedIOException e) {
      throw new NoRoomException("nothing can be spilled from " + stream.device(), e);
    }
  }

  /** Moves memory to the device. */
  void load(TieredMemory memory, CudaMemory to) {
    try {
      requireWorking();
      verify(memory, memory.extent());
    } catch (RuntimeException e) {
      to.close();
      throw e;
    }
    CudaMemory fromPinned = memory.pinned();
    Extent fromExtent = memory.extent();
    long from = fromPinned == null ? fromExtent.address() : fromPinned.address();
    copied(
        () -> {
          bounce.copyToDevice(to.address(), from, memory.bytes(), this::await);
          try (CudaMark mark = stream.mark()) {
            await(mark);
          }
        });
    memory.loaded(to);
    giveBack(fromPinned, fromExtent);
  }

  private void giveBack(CudaMemory ofPinned, Extent extent) {
    if (ofPinned != null) {
      ofPinned.close();
    }
    if (extent != null) {
      arena.free(extent);
    }
  }

  /** After a failure it is unknown what the device still reads and writes. */
  private void copied(Runnable copy) {
    try {
      copy.run();
    } catch (RuntimeException e) {
      broken = e;
      throw e;
    }
  }

  private void requireWorking() {
    if (broken != null) {
      throw new IllegalStateException(
          "memory can no longer move from and to " + stream.device(), broken);
    }
  }

  private void await(CudaMark mark) {
    Deadline deadline = Deadline.after(timeout);
    while (!mark.isReached()) {
      if (deadline.expired()) {
        throw new EventTimeoutException(
            "a copy between the host and " + stream.device() + " did not end within " + deadline);
      }
      LockSupport.parkNanos(POLL_NANOS);
    }
  }

  /** Frees memory of any tier that is not in use. */
  void free(TieredMemory memory) {
    if (broken != null) {
      LOG.warn("{}: memory is kept, because a copy failed before", stream);
      return;
    }
    CudaMemory onDevice = memory.takeOnDevice();
    if (onDevice != null) {
      onDevice.close();
    }
    giveBack(memory.pinned(), memory.extent());
  }

  /** Closes the stream and the buffers; returns false if the device may still use memory. */
  boolean end() {
    if (broken != null) {
      LOG.warn("{}: its memory is kept, because a copy failed before", stream, broken);
      return false;
    }
    stream.close();
    bounce.close();
    bouncing.close();
    pinned.close();
    return true;
  }
}
