package io.weft.table;

import io.weft.device.Event;
import io.weft.device.cuda.CudaMemory;
import java.util.Objects;

/**
 * A table in one run of device memory. The one that {@link #of} makes owns the memory and gives it
 * back when it is closed and work that uses it has ended; a partition of a {@link PartitionedTable}
 * is a view, and closing it does nothing. Thread-safe.
 */
public final class DeviceTable implements AutoCloseable {
  private final CudaMemory memory;
  private final long offset;
  private final TableLayout layout;
  private final Event ready;
  private final boolean isOwner;

  private DeviceTable(
      CudaMemory memory, long offset, TableLayout layout, Event ready, boolean isOwner) {
    Objects.checkFromIndexSize(offset, layout.bytes(), memory.bytes());
    if (offset % TableLayout.ALIGNMENT != 0) {
      throw new IllegalArgumentException(
          "a table at " + offset + ", which is no multiple of " + TableLayout.ALIGNMENT);
    }
    this.memory = memory;
    this.offset = offset;
    this.layout = layout;
    this.ready = Objects.requireNonNull(ready);
    this.isOwner = isOwner;
  }

  /**
   * A table that takes memory over.
   *
   * @param memory device memory; the table begins with it
   * @param ready ends when the table is written; pending or recorded until then
   * @throws IndexOutOfBoundsException when the memory is too short
   */
  public static DeviceTable of(CudaMemory memory, TableLayout layout, Event ready) {
    return new DeviceTable(memory, 0, layout, ready, true);
  }

  /**
   * A table in memory that stays its owner's.
   *
   * @param offset where it begins within the memory, a multiple of 64
   */
  public static DeviceTable view(CudaMemory memory, long offset, TableLayout layout, Event ready) {
    return new DeviceTable(memory, offset, layout, ready, false);
  }

  public TableLayout layout() {
    return layout;
  }

  public int rows() {
    return layout.rows();
  }

  /** The memory it lies in. */
  public CudaMemory memory() {
    return memory;
  }

  /** Where it begins within its memory. */
  public long offset() {
    return offset;
  }

  /** Length of the run. */
  public long bytes() {
    return layout.bytes();
  }

  /**
   * Where the run begins on the device; {@link TableLayout} says what lies where behind it.
   *
   * @throws IllegalStateException when the memory was closed
   */
  public long address() {
    return memory.address() + offset;
  }

  /** Ends when the table is written. Work on a lane that takes it is submitted behind it. */
  public Event ready() {
    return ready;
  }

  /** Keeps the memory until the event has ended, also when the table is closed before. */
  public void usedUntil(Event event) {
    memory.usedUntil(event);
  }

  @Override
  public void close() {
    if (isOwner) {
      memory.close();
    }
  }

  @Override
  public String toString() {
    return layout + " on " + memory.device();
  }
}
