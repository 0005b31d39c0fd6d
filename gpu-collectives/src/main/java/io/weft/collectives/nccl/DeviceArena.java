package io.weft.collectives.nccl;

import io.weft.collectives.CollectiveException;
import io.weft.collectives.GpuBufferCounters;
import io.weft.device.cuda.CudaDevice;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.CudaMemoryPool;
import io.weft.device.cuda.CudaMemorySource;
import io.weft.device.probe.ProbeOptions;
import io.weft.memory.Bytes;
import io.weft.memory.SettingNames;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Memory of one GPU for the buffers of a process's communicators, allocated through NCCL in whole
 * segments. A segment of a communicator that ended well is kept for later ones, because each
 * allocation by the driver stops the GPU. A window belongs to its communicator, so each registers
 * its segments again.
 *
 * <p>Thread-safe. Memory is allocated and freed outside the lock.
 */
public final class DeviceArena implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(DeviceArena.class);

  /** How long the close waits for the driver. */
  private static final Duration CLOSE_TIMEOUT = Duration.ofSeconds(5);

  private final CudaDevice device;
  private final CudaMemorySource source;
  private final long budgetBytes;
  private final SettingNames names;
  private final ThreadPoolExecutor freeing = freeingThread();
  private final List<Idle> idle = new ArrayList<>();
  private long usedBytes;
  private long freshBytes;
  private long reusedBytes;
  private long windows;
  private boolean closed;

  /** Memory that no buffer shares with another segment; the pool has only this piece. */
  record Segment(CudaMemoryPool pool, CudaMemory memory) {
    long bytes() {
      return memory.bytes();
    }

    void free() {
      memory.close();
      pool.close();
    }
  }

  /** A segment that no communicator uses, and the time since. */
  private record Idle(Segment segment, long since) {}

  private DeviceArena(
      CudaDevice device, CudaMemorySource source, long budgetBytes, SettingNames names) {
    this.device = device;
    this.source = source;
    this.budgetBytes = budgetBytes;
    this.names = names;
  }

  /**
   * Opens an arena without memory. Loads NCCL if it is not loaded.
   *
   * @param device stays open longer than the arena
   * @param budgetBytes the most bytes that it allocates
   * @param names of the budget, "collectivesGpuMemory", in messages
   */
  public static DeviceArena open(
      CudaDevice device, ProbeOptions libraries, long budgetBytes, SettingNames names) {
    return new DeviceArena(device, new NcclMemory(libraries), budgetBytes, names);
  }

  /** Rounds up to a length that a segment can have. */
  long rounded(long bytes) {
    return (bytes + source.granularity() - 1) & -source.granularity();
  }

  /**
   * Takes a segment with undefined content.
   *
   * @param bytes a rounded length
   * @throws CollectiveException of kind INVALID if there is no room
   */
  Segment take(long bytes) {
    List<Segment> evicted = new ArrayList<>();
    Segment kept = claim(bytes, evicted);
    evicted.forEach(Segment::free);
    if (kept != null) {
      return kept;
    }
    try {
      Segment fresh = allocate(bytes);
      synchronized (this) {
        freshBytes += bytes;
      }
      return fresh;
    } catch (RuntimeException | Error e) {
      synchronized (this) {
        usedBytes -= bytes;
      }
      throw e;
    }
  }

  /** Returns an idle segment of this length; else null, with the budget for a new one reserved. */
  private synchronized Segment claim(long bytes, List<Segment> evicted) {
    if (closed) {
      throw CollectiveException.invalid("the memory for collectives of " + device + " was closed");
    }
    for (Iterator<Idle> each = idle.iterator(); each.hasNext(); ) {
      Segment next = each.next().segment;
      if (next.bytes() == bytes) {
        each.remove();
        usedBytes += bytes;
        reusedBytes += bytes;
        return next;
      }
    }
    if (bytes > budgetBytes - usedBytes) {
      throw CollectiveException.invalid(
          "%s more on %s exceed %s of %s, of which %s are in segments of communicators, or kept after a failure"
              .formatted(
                  Bytes.text(bytes),
                  device,
                  names.of("collectivesGpuMemory"),
                  Bytes.text(budgetBytes),
                  Bytes.text(usedBytes)));
    }
    while (bytes > budgetBytes - usedBytes - idleBytes()) {
      evicted.add(idle.remove(0).segment);
    }
    usedBytes += bytes;
    return null;
  }

  private long idleBytes() {
    return idle.stream().mapToLong(each -> each.segment.bytes()).sum();
  }

  /** If the GPU has no room, frees the idle segments and tries once more. */
  private Segment allocate(long bytes) {
    try {
      return allocateOnce(bytes);
    } catch (RuntimeException e) {
      if (statistics().idleBytes() == 0) {
        throw e;
      }
      LOG.info("{}: idle memory for collectives is freed, because {}", device, e.getMessage());
      freeIdle(Duration.ZERO);
      return allocateOnce(bytes);
    }
  }

  private Segment allocateOnce(long bytes) {
    CudaMemoryPool pool = CudaMemoryPool.open(device, source, bytes);
    return new Segment(pool, pool.take(bytes));
  }

  /** Keeps a segment for the next communicator. Nothing uses it any more. */
  void giveBack(Segment segment) {
    synchronized (this) {
      if (!closed) {
        usedBytes -= segment.bytes();
        idle.add(new Idle(segment, System.nanoTime()));
        return;
      }
    }
    drop(segment);
  }

  /**
   * Starts to free a segment that other ranks may still have mapped, on a daemon thread
   * "weft-gpu-free", because the driver may wait for running work.
   */
  void drop(Segment segment) {
    freeing.execute(
        () -> {
          segment.free();
          synchronized (this) {
            usedBytes -= segment.bytes();
          }
        });
  }

  /** Counts a window. */
  synchronized void registered() {
    windows++;
  }

  /** Frees the segments that were not used for that time. */
  public void freeIdle(Duration time) {
    List<Segment> old = new ArrayList<>();
    synchronized (this) {
      long now = System.nanoTime();
      idle.removeIf(
          each -> {
            boolean isOld = now - each.since >= time.toNanos();
            if (isOld) {
              old.add(each.segment);
            }
            return isOld;
          });
    }
    old.forEach(Segment::free);
  }

  /** The current counters. */
  public synchronized GpuBufferCounters statistics() {
    return new GpuBufferCounters(windows, freshBytes, reusedBytes, usedBytes, idleBytes());
  }

  /** Frees what is idle, and later what is returned. Waits a little for the driver. */
  @Override
  public void close() {
    synchronized (this) {
      closed = true;
    }
    freeIdle(Duration.ZERO);
    try {
      Object unused = freeing.submit(() -> {}).get(CLOSE_TIMEOUT.toNanos(), TimeUnit.NANOSECONDS);
    } catch (TimeoutException e) {
      LOG.warn("{}: the driver does not free memory for collectives", device);
    } catch (ExecutionException e) {
      throw new IllegalStateException(e.getCause());
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private static ThreadPoolExecutor freeingThread() {
    ThreadPoolExecutor one =
        new ThreadPoolExecutor(
            1,
            1,
            1,
            TimeUnit.SECONDS,
            new LinkedBlockingQueue<>(),
            work -> {
              Thread thread = new Thread(work, "weft-gpu-free");
              thread.setDaemon(true);
              return thread;
            });
    one.allowCoreThreadTimeOut(true);
    return one;
  }
}
