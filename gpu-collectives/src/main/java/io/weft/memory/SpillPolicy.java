package io.weft.memory;

import io.weft.memory.ArenaOptions.PrivateMemory;
import java.time.Duration;
import java.util.Collection;
import java.util.Comparator;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.function.ToLongFunction;

/**
 * The decisions about spilling: which memory an allocation takes, when memory is reclaimed, and
 * what is evicted. The callers contain the mechanics only. Immutable and thread-safe.
 *
 * <p><b>Order of tiers.</b> The device comes first, then pinned host memory, then the arena. The
 * arena takes shared memory first. When that is full, it overflows to disk. An arena with private
 * memory overflows to private memory instead, so that no plain text reaches a disk.
 *
 * <p><b>Transient and retained.</b> Private memory has two parts. Retained memory is held for any
 * time, such as spilled device memory, received arrays and the chunks of a feed. Transient memory
 * is returned before its holder waits for anything but more transient memory, such as a chunk
 * between a map task and an encrypted disk. Half of private memory, in whole segments, is for
 * retained memory, the rest is for transient memory. Neither part lends to the other, so retained
 * memory cannot block the tasks that pass transient memory on.
 *
 * <p><b>Reclaim.</b> The arena calls the reclaim hooks when shared memory is full, before it
 * overflows. Hooks that freed nothing useful are not called again for {@link #PAUSE_NANOS}, because
 * they list folders. Before an allocation fails, they are called regardless of the pause; {@link
 * Use#TRANSIENT_NOW} and {@link Use#SHARED_ONLY} fail without that call. A retired output is freed
 * as soon as no reader holds it ({@link #mayFree}).
 *
 * <p><b>Waiting.</b> Only {@link Use#TRANSIENT} waits, and only in an arena with private memory.
 * The thread first returns what it can, then waits until other threads free memory or the timeout
 * expires. An allocation that fits in no tier fails at once. A map task commits its chunks when
 * they reach its {@link #transientShare share}.
 *
 * <p><b>Eviction.</b> The least recently used memory on the device moves first; leased memory never
 * moves. Unused segments make room for an extent that needs a segment of its own. Segments that
 * stay unused for some time are deleted, so that an idle process holds no memory. Before that they
 * are reused, which is faster than fresh memory.
 */
public final class SpillPolicy {
  /** How long useless reclaim hooks rest, and how often a waiting thread searches again. */
  static final long PAUSE_NANOS = TimeUnit.SECONDS.toNanos(1);

  /** The use of memory that was spilled from a device. */
  public static final Use DEVICE_SPILL = Use.RETAINED;

  /** What an allocation is for. It decides which tiers are searched and whether to wait. */
  public enum Use {
    /** Memory that is held for any time: shared memory, then private memory or disk. */
    RETAINED,

    /**
     * Shared memory, then transient private memory. Waits when both are full, so its holder frees
     * it before it waits for anything else than more of this memory. In an arena without private
     * memory this is {@link #RETAINED}.
     */
    TRANSIENT,

    /** As {@link #TRANSIENT}, but fails instead of waiting. */
    TRANSIENT_NOW,

    /**
     * Memory for work that can run later: shared memory only. In an arena without private memory
     * this is {@link #RETAINED}.
     */
    DEFERRABLE,

    /** Shared memory, or nothing: for data that is not worth a file. Reclaims nothing. */
    SHARED_ONLY,

    /** Disk, for encrypted data. */
    DISK
  }

  /** When an allocation calls the reclaim hooks. */
  enum Reclaim {
    NEVER,
    /** When shared memory is full, at most once in each pause. */
    PACED,
    /** As {@link #PACED}, and before the allocation fails. */
    BEFORE_FAILURE
  }

  /**
   * The steps of one allocation.
   *
   * @param sharedMemory whether shared memory is searched first
   * @param overflow the tier that is searched next; null for none
   * @param reclaim when the reclaim hooks are called
   * @param mayWait whether the thread returns memory that it holds and waits
   * @param timeout the longest wait; zero for an allocation that can never succeed
   */
  record Plan(
      boolean sharedMemory, Tier overflow, Reclaim reclaim, boolean mayWait, Duration timeout) {
    Plan(boolean sharedMemory, Tier overflow, Reclaim reclaim) {
      this(sharedMemory, overflow, reclaim, false, Duration.ZERO);
    }
  }

  private final Tier memory;
  private final Tier disk;
  private final Tier transientMemory;
  private final Tier retainedMemory;
  private final PrivateMemory privateMemory;

  SpillPolicy(
      Tier memory,
      Tier disk,
      Tier transientMemory,
      Tier retainedMemory,
      PrivateMemory privateMemory) {
    this.memory = memory;
    this.disk = disk;
    this.transientMemory = transientMemory;
    this.retainedMemory = retainedMemory;
    this.privateMemory = privateMemory;
  }

  /** Plans an allocation of that many bytes. */
  Plan plan(Use use, long bytes) {
    boolean encrypted = privateMemory.bytes() > 0;
    return switch (use) {
      case SHARED_ONLY -> new Plan(true, null, Reclaim.NEVER);
      case DISK -> new Plan(false, disk, Reclaim.BEFORE_FAILURE);
      case DEFERRABLE -> encrypted ? new Plan(true, null, Reclaim.NEVER) : retained(disk);
      case RETAINED -> retained(encrypted ? retainedMemory : disk);
      case TRANSIENT_NOW ->
          encrypted ? new Plan(true, transientMemory, Reclaim.PACED) : retained(disk);
      case TRANSIENT -> encrypted ? waiting(bytes) : retained(disk);
    };
  }

  private static Plan retained(Tier overflow) {
    return new Plan(true, overflow, Reclaim.BEFORE_FAILURE);
  }

  private Plan waiting(long bytes) {
    boolean possible = bytes <= Math.max(memory.budgetBytes, transientMemory.budgetBytes);
    Duration timeout = possible ? privateMemory.timeout() : Duration.ZERO;
    return new Plan(true, transientMemory, Reclaim.BEFORE_FAILURE, true, timeout);
  }

  /** Whether an extent that was freed may end the wait of another thread. */
  boolean endsWaits(MemoryKind freed) {
    return privateMemory.bytes() > 0 && freed != MemoryKind.DISK;
  }

  /**
   * The transient private bytes that one task may hold while it asks for more. All tasks together
   * get half of the transient memory, the other half is for readers and for long chunks.
   */
  long transientShare() {
    return transientMemory.budgetBytes / 2 / privateMemory.users();
  }

  /** The part of private memory for retained memory: half of it, in whole segments. */
  static long retainedBytes(long privateBytes, long segmentBytes) {
    return privateBytes / 2 / segmentBytes * segmentBytes;
  }

  /** The smallest private memory: one segment for each part. */
  static long leastPrivateBytes(long segmentBytes) {
    return 2 * segmentBytes;
  }

  /**
   * The memory that is evicted first: the least recently used.
   *
   * @param idleNanos the time since the last use; negative for memory that cannot move now
   * @return empty if nothing can move
   */
  public static <T> Optional<T> victim(Collection<T> all, ToLongFunction<T> idleNanos) {
    record Idle<T>(T memory, long nanos) {}
    return all.stream()
        .map(each -> new Idle<>(each, idleNanos.applyAsLong(each)))
        .filter(each -> each.nanos() >= 0)
        .max(Comparator.comparingLong(Idle::nanos))
        .map(Idle::memory);
  }

  /**
   * Whether the memory of a retired output may be freed.
   *
   * @param held whether a reader of this process holds it
   * @param leased whether a reader of another process holds a lease on it. This is called only if
   *     necessary, because it may list a folder.
   */
  public static boolean mayFree(boolean held, BooleanSupplier leased) {
    return !held && !leased.getAsBoolean();
  }
}
