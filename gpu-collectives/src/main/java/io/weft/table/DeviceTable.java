package io.weft.table;

import io.weft.device.Event;
import io.weft.device.HostEvent;
import io.weft.device.cuda.CudaMemory;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;
import java.util.function.LongSupplier;

/**
 * A table in one run of device memory. The one that {@link #of} makes owns the memory and gives it
 * back when it is closed and work that uses it has ended; a partition of a {@link PartitionedTable}
 * is a view, and closing it does nothing. One that was {@link #lent} lies where a block of others
 * does. Thread-safe.
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
   * A table that takes memory over.
   *
   * @param memory device memory; the table begins with it
   * @param ready ends when the table is written; pending or recorded until then
   * @throws IndexOutOfBoundsException when the memory is too short
   */
  public static DeviceTable of(CudaMemory memory, TableLayout layout, Event ready) {
    requireWithin(memory, 0, layout);
    return new DeviceTable(memory::address, layout, ready, memory::usedUntil, memory::close);
  }

  /**
   * A table in memory that stays its owner's.
   *
   * @param offset where it begins within the memory, a multiple of 64
   */
  public static DeviceTable view(CudaMemory memory, long offset, TableLayout layout, Event ready) {
    requireWithin(memory, offset, layout);
    return new DeviceTable(
        () -> memory.address() + offset, layout, ready, memory::usedUntil, () -> {});
  }

  /**
   * A table that is written and lies in device memory which others lend, until it is closed.
   *
   * @param address where it begins, a multiple of 64
   * @param keeper keeps the memory until an event has ended, also when it was given back before
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
          "a table at " + start + ", which is no multiple of " + TableLayout.ALIGNMENT);
    }
  }

  public TableLayout layout() {
    return layout;
  }

  public int rows() {
    return layout.rows();
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
    return start.getAsLong();
  }

  /** Ends when the table is written. Work on a lane that takes it is submitted behind it. */
  public Event ready() {
    return ready;
  }

  /** Keeps the memory until the event has ended, also when the table is closed before. */
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
