package io.weft.shuffle.device;

import io.weft.device.Event;
import io.weft.device.HostEvent;
import io.weft.device.cuda.CudaMemory;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;
import java.util.function.LongSupplier;

/**
 * A table in one range of device memory. A table from {@link #of} owns the memory and frees it when
 * it is closed and its uses have ended. A partition of a {@link PartitionedTable} is a view, and
 * closing it does nothing. A table from {@link #lent} uses borrowed memory. Thread-safe.
 */
public final class DeviceTable implements AutoCloseable {
  private final LongSupplier start;
  private final TableLayout layout;
  private final Event ready;
  private final Consumer<Event> keeper;
  private final Runnable giveBack;

  private DeviceTable(
      LongSupplier start,
      TableLayout layout,
      Event ready,
      Consumer<Event> keeper,
      Runnable giveBack) {
    this.start = start;
    this.layout = layout;
    this.ready = Objects.requireNonNull(ready);
    this.keeper = keeper;
    this.giveBack = giveBack;
  }

  /**
   * Creates a table that takes ownership of memory.
   *
   * @param memory device memory; the table begins at its start
   * @param ready ends when the table is written; pending or recorded until then
   * @throws IndexOutOfBoundsException if the memory is too short
   */
  public static DeviceTable of(CudaMemory memory, TableLayout layout, Event ready) {
    requireWithin(memory, 0, layout);
    return new DeviceTable(memory::address, layout, ready, memory::usedUntil, memory::close);
  }

  /**
   * Creates a table in memory that stays its owner's.
   *
   * @param offset where it begins within the memory, a multiple of 64
   */
  public static DeviceTable view(CudaMemory memory, long offset, TableLayout layout, Event ready) {
    requireWithin(memory, offset, layout);
    return new DeviceTable(
        () -> memory.address() + offset, layout, ready, memory::usedUntil, () -> {});
  }

  /**
   * Creates a written table in device memory that is borrowed until the table is closed.
   *
   * @param address where it begins, a multiple of 64
   * @param keeper keeps the memory until an event has ended, even if it was given back earlier
   * @param giveBack runs once, when the table is closed
   */
  public static DeviceTable lent(
      long address, TableLayout layout, Consumer<Event> keeper, Runnable giveBack) {
    requireAligned(address);
    AtomicBoolean closed = new AtomicBoolean();
    return new DeviceTable(
        () -> {
          if (closed.get()) {
            throw new IllegalStateException("the table of " + layout + " was closed");
          }
          return address;
        },
        layout,
        HostEvent.completed("a table of " + layout),
        keeper,
        () -> {
          if (closed.compareAndSet(false, true)) {
            giveBack.run();
          }
        });
  }

  private static void requireWithin(CudaMemory memory, long offset, TableLayout layout) {
    Objects.checkFromIndexSize(offset, layout.bytes(), memory.bytes());
    requireAligned(offset);
  }

  private static void requireAligned(long start) {
    if (start % TableLayout.ALIGNMENT != 0) {
      throw new IllegalArgumentException(
          "a table at " + start + ", which is not a multiple of " + TableLayout.ALIGNMENT);
    }
  }

  public TableLayout layout() {
    return layout;
  }

  public int rows() {
    return layout.rows();
  }

  /** The length of the memory range. */
  public long bytes() {
    return layout.bytes();
  }

  /**
   * The device address of the start; {@link TableLayout} gives the offsets from there.
   *
   * @throws IllegalStateException if the memory was closed
   */
  public long address() {
    return start.getAsLong();
  }

  /** Ends when the table is written. Work that uses the table must wait for it. */
  public Event ready() {
    return ready;
  }

  /** Keeps the memory until the event has ended, even if the table is closed earlier. */
  public void usedUntil(Event event) {
    keeper.accept(event);
  }

  @Override
  public void close() {
    giveBack.run();
  }

  @Override
  public String toString() {
    return layout + " on a device";
  }
}
