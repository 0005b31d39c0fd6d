package io.weft.deviceblocks;

import io.weft.crosshost.ReceivedBuffer;
import io.weft.device.Event;
import io.weft.device.cuda.TieredLease;
import io.weft.table.TableLayout;
import java.util.function.Consumer;

/**
 * A table of a block on this executor's device. Its memory stays until it is closed and the events
 * of its uses have ended. Thread-safe.
 */
public final class DeviceRows implements AutoCloseable {
  private final TableLayout layout;
  private final long address;
  private final Consumer<Event> keep;
  private final Runnable giveBack;

  private DeviceRows(TableLayout layout, long address, Consumer<Event> keep, Runnable giveBack) {
    this.layout = layout;
    this.address = address;
    this.keep = keep;
    this.giveBack = giveBack;
  }

  /** A table in the memory that its map task wrote. */
  static DeviceRows inPlace(DeviceOutput.Slice slice, TieredLease lease) {
    return new DeviceRows(
        slice.layout(), lease.address() + slice.offset(), lease::usedUntil, lease::close);
  }

  /** A table in a receive buffer. */
  static DeviceRows received(TableLayout layout, ReceivedBuffer buffer) {
    return new DeviceRows(
        layout, buffer.buffer().address(), buffer.memory()::usedUntil, buffer::close);
  }

  /** The layout of the table. */
  public TableLayout layout() {
    return layout;
  }

  /** The address of the table. */
  public long address() {
    return address;
  }

  /** Keeps the memory until the event has ended, also if this is closed before. */
  public void usedUntil(Event event) {
    keep.accept(event);
  }

  @Override
  public void close() {
    giveBack.run();
  }
}
