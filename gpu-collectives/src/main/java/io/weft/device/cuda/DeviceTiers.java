package io.weft.device.cuda;

import io.weft.device.Deadline;
import io.weft.device.Event;
import io.weft.device.EventFailedException;
import io.weft.device.EventTimeoutException;
import io.weft.device.HostLane;
import io.weft.device.Lane.Priority;
import io.weft.memory.Bytes;
import io.weft.memory.Extent;
import io.weft.memory.SharedArena;
import io.weft.memory.SpillPolicy;
import java.time.Duration;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Device memory that spills. The least recently used memory moves to pinned host memory, then to
 * the arena, and returns when it is leased. {@link SpillPolicy} has the rules.
 *
 * <p>All moves run one after the other on one daemon thread, "weft-lane-NAME-tiers", with a stream
 * of the highest priority. Callers wait for it, at most for the timeout. After a failed move
 * nothing moves any more, and memory that the device may still use is kept. Thread-safe.
 */
public final class DeviceTiers implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(DeviceTiers.class);
  private static final long LARGEST_BYTES = Integer.MAX_VALUE - 63L;

  private final String name;
  private final CudaMemoryPool device;
  private final TierMoves moves;
  private final HostLane lane;
  private final Duration timeout;
  private final Set<TieredMemory> all = ConcurrentHashMap.newKeySet();
  private final AtomicLong spilled = new AtomicLong();

  private DeviceTiers(
      String name, CudaMemoryPool device, TierMoves moves, HostLane lane, Duration timeout) {
    this.name = name;
    this.device = device;
    this.moves = moves;
    this.lane = lane;
    this.timeout = timeout;
  }

  /**
   * Opens empty tiers.
   *
   * @param deviceBytes the budget on the device
   * @param pinnedBytes the budget of pinned memory, including 2 MiB for copies from and to the
   *     arena
   * @param arena belongs to the caller and must be closed later
   * @param timeout the longest wait of one call
   */
  public static DeviceTiers open(
      CudaDevice gpu,
      String name,
      long deviceBytes,
      long pinnedBytes,
      SharedArena arena,
      Duration timeout) {
    return new DeviceTiers(
        name,
        CudaMemoryPool.open(gpu, CudaMemoryPool.Kind.DEVICE, deviceBytes),
        TierMoves.open(gpu, name + "-tiers", pinnedBytes, arena, timeout),
        HostLane.open(name + "-tiers", timeout, "", Priority.HIGHEST),
        timeout);
  }

  /**
   * Takes memory on the device with undefined contents; other memory is spilled if necessary.
   *
   * @param bytes 1 to 2^31 - 64
   * @throws IllegalStateException when all memory on the device is leased, or a tier is full
   */
  public TieredMemory allocate(long bytes) {
    if (bytes < 1 || bytes > LARGEST_BYTES) {
      throw new IllegalArgumentException(bytes + " bytes are not 1 to " + LARGEST_BYTES);
    }
    return run(
        "allocating " + Bytes.text(bytes),
        () -> {
          TieredMemory memory = new TieredMemory(this, takeOnDevice(bytes));
          all.add(memory);
          return memory;
        });
  }

  /**
   * Takes over memory that other code wrote, such as kernels.
   *
   * @param written memory of {@link #memory()}, 1 to 2^31 - 64 bytes; the work that writes it has
   *     ended
   */
  public TieredMemory adopt(CudaMemory written) {
    if (written.bytes() > LARGEST_BYTES) {
      throw new IllegalArgumentException(written.bytes() + " bytes are not 1 to " + LARGEST_BYTES);
    }
    TieredMemory memory = new TieredMemory(this, written);
    all.add(memory);
    return memory;
  }

  /**
   * Takes over bytes on the host; they move to the device when they are leased.
   *
   * @param written an extent of the arena of these tiers, which is freed when the result is closed
   * @param bytes the used bytes of it, 1 to 2^31 - 64
   */
  public TieredMemory adopt(Extent written, long bytes) {
    if (bytes < 1 || bytes > Math.min(LARGEST_BYTES, written.length())) {
      throw new IllegalArgumentException(
          bytes + " bytes of " + written.length() + " are not 1 to " + LARGEST_BYTES);
    }
    TieredMemory memory = new TieredMemory(this, written, bytes);
    TierMoves.sign(memory);
    all.add(memory);
    return memory;
  }

  /**
   * The pool on the device. Other code may take memory from it, to {@link #adopt} or return it
   * later. When the pool is full, that code calls {@link #spill}.
   */
  public CudaMemoryPool memory() {
    return device;
  }

  /**
   * Makes room on the device for other code, such as a library that allocates directly. It spills
   * until that many bytes have moved or nothing more can move, and frees empty segments.
   *
   * @return the bytes that were moved
   */
  public long spill(long bytes) {
    AtomicLong moved = new AtomicLong();
    AutoCloseable nothing = () -> {};
    run(
        "spilling " + Bytes.text(bytes),
        () -> {
          Optional<TieredMemory> next = leastRecentlyUsed();
          while (moved.get() < bytes && next.isPresent()) {
            if (spill(next.get())) {
              moved.addAndGet(next.get().bytes());
            }
            next = leastRecentlyUsed();
          }
          device.trim();
          return nothing;
        });
    return moved.get();
  }

  TieredLease load(TieredMemory memory) {
    return run(
        "loading " + Bytes.text(memory.bytes()),
        () -> {
          TieredLease there = memory.leaseOnDevice();
          if (there != null) {
            return there;
          }
          moves.load(memory, takeOnDevice(memory.bytes()));
          return memory.leaseOnDevice();
        });
  }

  HostCopy copy(TieredMemory memory) {
    return run("copying " + Bytes.text(memory.bytes()), () -> moves.copy(memory));
  }

  Event read(TieredMemory memory, long offset, long length, long to) {
    return lane.submit(
        "reading " + Bytes.text(length) + " of " + this,
        () -> moves.read(memory, offset, length, to));
  }

  private CudaMemory takeOnDevice(long bytes) {
    while (true) {
      RuntimeException full;
      try {
        return device.take(bytes);
      } catch (NoRoomException e) {
        full = e;
      } catch (CudaException e) {
        if (!e.isOutOfMemory()) {
          throw e;
        }
        full = e;
      }
      TieredMemory victim = leastRecentlyUsed().orElseThrow(() -> allLeased(bytes, full));
      boolean unused = spill(victim);
    }
  }

  private boolean spill(TieredMemory victim) {
    boolean moved = moves.spill(victim);
    spilled.addAndGet(moved ? victim.bytes() : 0);
    return moved;
  }

  /** Bytes that were moved off the device so far. */
  public long spilledBytes() {
    return spilled.get();
  }

  private NoRoomException allLeased(long bytes, RuntimeException full) {
    return new NoRoomException(
        this
            + " has no room for "
            + Bytes.text(bytes)
            + " on the device, and all memory there is in use, or lent to other processes: "
            + Bytes.text(device.lentBytes()),
        full);
  }

  private Optional<TieredMemory> leastRecentlyUsed() {
    return SpillPolicy.victim(all, TieredMemory::idleNanos);
  }

  /** Frees memory that is not used any more, after the moves that may be under way. */
  void free(TieredMemory memory) {
    AtomicBoolean started = new AtomicBoolean();
    try {
      lane.submit(
              "freeing",
              () -> {
                started.set(true);
                freeNow(memory);
              })
          .whenDone(
              cause -> {
                if (!started.get()) {
                  freeNow(memory);
                }
              });
    } catch (IllegalStateException e) {
      freeNow(memory); // The lane is closed, so nothing moves.
    }
  }

  private void freeNow(TieredMemory memory) {
    all.remove(memory);
    moves.free(memory);
  }

  /** Runs work on the tiers' thread. A result that comes after the timeout is closed. */
  private <T extends AutoCloseable> T run(String what, Callable<T> work) {
    AtomicReference<T> result = new AtomicReference<>();
    AtomicBoolean settled = new AtomicBoolean();
    Event event =
        lane.submit(
            what + " of " + this,
            () -> {
              T made = work.call();
              result.set(made);
              if (!settled.compareAndSet(false, true)) {
                made.close();
              }
            });
    try {
      event.await(Deadline.after(timeout));
    } catch (EventTimeoutException e) {
      if (settled.compareAndSet(false, true)) {
        throw e;
      }
    } catch (EventFailedException e) {
      if (e.getCause() instanceof RuntimeException cause) {
        throw cause;
      }
      throw e;
    }
    return result.get();
  }

  /** The bytes in a tier now. */
  public long bytes(MemoryTier tier) {
    return all.stream()
        .filter(memory -> memory.tier() == tier)
        .mapToLong(TieredMemory::bytes)
        .sum();
  }

  /** Ends the moves. The owners of remaining memory must close it. */
  @Override
  public void close() {
    drain();
    lane.close();
    if (!all.isEmpty()) {
      LOG.warn("{}: {} pieces of memory were not closed", this, all.size());
    }
    if (lane.awaitEnd(Deadline.after(timeout)) && moves.end()) {
      device.close();
    }
  }

  /** Waits until memory that was closed before is freed. */
  private void drain() {
    try {
      lane.drain(Deadline.after(timeout));
    } catch (IllegalStateException | EventTimeoutException e) {
      LOG.debug("{}: closed twice, or while it moves memory: {}", this, e.getMessage());
    }
  }

  @Override
  public String toString() {
    return "tiers " + name + " of " + device.device();
  }
}
