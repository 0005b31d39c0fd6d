package io.weft.transfers;

import io.weft.memory.ArenaFullException;
import io.weft.memory.Extent;
import io.weft.memory.SharedArena;
import io.weft.memory.SpillPolicy.Use;
import io.weft.transfers.ReceiveMemory.BufferStatistics;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.TreeMap;

/**
 * Receive buffers from an arena. Returned buffers are kept by size and reused, so that after the
 * first batches a receive allocates nothing. Idle buffers are freed when the arena runs full, or
 * when no buffer was taken or returned for a time.
 *
 * <p>Sizes up to 1 MiB are rounded up to a power of two, at least 4 KiB. Larger sizes are rounded
 * up to a multiple of 1 MiB. Thread-safe.
 */
public final class TransferBuffers implements ReceiveMemory, AutoCloseable {
  private static final long LEAST_BYTES = 4L << 10;
  private static final long STEP_BYTES = 1L << 20;

  /** The largest extent of an arena. */
  private static final long MAX_BYTES = Integer.MAX_VALUE - 63L;

  private final SharedArena arena;
  private final TreeMap<Long, Deque<Extent>> idle = new TreeMap<>();
  private long taken;
  private long allocated;
  private long out;
  private long idleBytes;
  private long lastUseNanos;
  private boolean closed;

  /** Takes buffers from an arena, which must stay open until the last buffer has returned. */
  public TransferBuffers(SharedArena arena) {
    this.arena = arena;
    arena.onPressure(this::giveBackIdle);
  }

  /**
   * Allocates a buffer with undefined contents.
   *
   * @param bytes 1 to 2^31 - 64
   * @throws ArenaFullException if no idle buffer fits and the arena is full
   * @throws IOException if the size is out of range
   */
  @Override
  public TransferBuffer take(long bytes) throws IOException {
    if (bytes < 1 || bytes > MAX_BYTES) {
      throw new IOException(
          "an array in host memory has 1 to %d bytes, not %d; send it in parts"
              .formatted(MAX_BYTES, bytes));
    }
    long size = rounded(bytes);
    Extent extent = idle(size);
    if (extent == null) {
      extent = arena.allocate(size, Use.RETAINED);
      synchronized (this) {
        allocated++;
      }
    }
    synchronized (this) {
      taken++;
      out++;
      lastUseNanos = System.nanoTime();
    }
    Extent block = extent;
    return new TransferBuffer(extent.address(), bytes, () -> takeBack(block));
  }

  private static long rounded(long bytes) {
    if (bytes > STEP_BYTES) {
      return Math.min((bytes + STEP_BYTES - 1) / STEP_BYTES * STEP_BYTES, MAX_BYTES);
    }
    long power = Long.highestOneBit(Math.max(1, bytes));
    return Math.max(LEAST_BYTES, power < bytes ? 2 * power : power);
  }

  private synchronized Extent idle(long size) {
    if (closed) {
      throw new IllegalStateException("the transfer buffers are closed");
    }
    Deque<Extent> same = idle.get(size);
    Extent extent = same == null ? null : same.poll();
    idleBytes -= extent == null ? 0 : extent.length();
    return extent;
  }

  private void takeBack(Extent extent) {
    synchronized (this) {
      out--;
      lastUseNanos = System.nanoTime();
      if (!closed) {
        idle.computeIfAbsent(extent.length(), size -> new ArrayDeque<>()).push(extent);
        idleBytes += extent.length();
        return;
      }
    }
    arena.free(extent);
  }

  /** Frees the idle buffers if none was taken or returned for that time. */
  void freeIdle(Duration time) {
    synchronized (this) {
      if (idleBytes == 0 || System.nanoTime() - lastUseNanos < time.toNanos()) {
        return;
      }
    }
    giveBackIdle();
  }

  private void giveBackIdle() {
    List<Extent> all = new ArrayList<>();
    synchronized (this) {
      idle.values().forEach(all::addAll);
      idle.clear();
      idleBytes = 0;
    }
    all.forEach(arena::free);
  }

  @Override
  public synchronized BufferStatistics statistics() {
    return new BufferStatistics(taken, allocated, out, idleBytes, 0);
  }

  /** Frees idle buffers now, and the others when they return. */
  @Override
  public void close() {
    synchronized (this) {
      closed = true;
    }
    giveBackIdle();
  }
}
