package io.weft.shuffle.device;

import io.weft.device.Event;
import io.weft.device.HostEvent;
import io.weft.device.cuda.CudaLane;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.CudaMemoryPool;
import io.weft.memory.Memory;
import io.weft.shuffle.device.TableConcatenator.TableCopy;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Objects;

/**
 * A table in pinned host memory, with the same layout as on a device. Columns are copied into it
 * from any memory. It then moves to the device as one copy, and back as one. Owns its memory.
 *
 * <p>Filled by one thread; read by many threads once it is ready.
 */
public final class HostTable implements AutoCloseable {
  private final CudaMemory memory;
  private final TableLayout layout;
  private final Event ready;

  private HostTable(CudaMemory memory, TableLayout layout, Event ready) {
    this.memory = memory;
    this.layout = layout;
    this.ready = ready;
  }

  /**
   * Allocates a table to fill. Nullable columns are null, others are zero, and strings are empty.
   *
   * @param pinned a pool of pinned memory
   */
  public static HostTable allocate(CudaMemoryPool pinned, TableLayout layout) {
    CudaMemory memory = pinned.take(TableCopy.bytes(layout));
    Memory.setMemory(memory.address(), layout.bytes(), (byte) 0);
    return new HostTable(memory, layout, HostEvent.completed("a table to fill"));
  }

  public TableLayout layout() {
    return layout;
  }

  /** Ends when the table is complete; already ended for a table that is filled here. */
  public Event ready() {
    return ready;
  }

  /**
   * Sets the validity bits, lowest bit first and 1 for a value, as in Arrow.
   *
   * @param bits address of (rows + 7) / 8 bytes
   */
  public HostTable putValidity(int column, long bits) {
    long to = address() + layout.validity(column);
    long bytes = (layout.rows() + 7L) / 8;
    Memory.copy(bits, to, bytes);
    clearPadding(to);
    return this;
  }

  /** Marks every row of the column as valid. */
  public HostTable putAllValid(int column) {
    long to = address() + layout.validity(column);
    Memory.setMemory(to, (layout.rows() + 7L) / 8, (byte) -1);
    clearPadding(to);
    return this;
  }

  /** Clears the bits after the last row. */
  private void clearPadding(long validity) {
    int left = layout.rows() % 8;
    if (left != 0) {
      long last = validity + layout.rows() / 8;
      Memory.putByte(last, (byte) (Memory.getByte(last) & ((1 << left) - 1)));
    }
  }

  /**
   * Sets the values of a column of fixed width.
   *
   * @param values address of as many bytes as {@link TableLayout#dataBytes} says
   */
  public HostTable putValues(int column, long values) {
    requireFixed(column);
    Memory.copy(values, address() + layout.data(column), layout.dataBytes(column));
    return this;
  }

  /**
   * Sets the values of a column of fixed width.
   *
   * @param values as many bytes as {@link TableLayout#dataBytes} says, up to its limit; its
   *     position does not change
   */
  public HostTable putValues(int column, ByteBuffer values) {
    requireFixed(column);
    if (values.remaining() != layout.dataBytes(column)) {
      throw new IllegalArgumentException(
          values.remaining()
              + " bytes for column "
              + column
              + ", which takes "
              + layout.dataBytes(column));
    }
    Memory.view(this, address() + layout.data(column), values.remaining()).put(values.duplicate());
    return this;
  }

  /**
   * Sets booleans from bits, as in Arrow: lowest bit first, 1 for true.
   *
   * @param bits address of (rows + 7) / 8 bytes
   */
  public HostTable putBooleans(int column, long bits) {
    if (layout.columns().get(column).kind() != ColumnKind.BOOLEAN) {
      throw new IllegalArgumentException("column " + column + " of " + layout + " is not boolean");
    }
    long to = address() + layout.data(column);
    for (int row = 0; row < layout.rows(); row++) {
      Memory.putByte(to + row, (byte) (Memory.getByte(bits + row / 8) >> row % 8 & 1));
    }
    return this;
  }

  private void requireFixed(int column) {
    if (layout.columns().get(column).kind().isString()) {
      throw new IllegalArgumentException("column " + column + " of " + layout + " has strings");
    }
  }

  /**
   * Sets the strings of a column, as in Arrow.
   *
   * @param offsets address of rows + 1 offsets of 4 bytes, of which the first need not be 0
   * @param bytes the base address of the offsets
   * @throws IllegalArgumentException if an offset is less than the one before, or the size of the
   *     strings differs from the layout
   */
  public HostTable putStrings(int column, long offsets, long bytes) {
    long to = address() + layout.offsets(column);
    int first = Memory.getInt(offsets);
    int before = first;
    for (int row = 0; row <= layout.rows(); row++) {
      int offset = Memory.getInt(offsets + 4L * row);
      if (offset < before || before < 0) {
        throw new IllegalArgumentException(
            "string " + (row - 1) + " of column " + column + ": " + before + " to " + offset);
      }
      Memory.putInt(to + 4L * row, offset - first);
      before = offset;
    }
    if (before - first != layout.stringBytes(column)) {
      throw new IllegalArgumentException(
          (before - first)
              + " bytes of strings for column "
              + column
              + ", which takes "
              + layout.stringBytes(column));
    }
    Memory.copy(bytes + first, address() + layout.data(column), layout.stringBytes(column));
    return this;
  }

  /** Whether a row of a column has a value. */
  public boolean isValid(int column, int row) {
    Objects.checkIndex(row, layout.rows());
    return !layout.columns().get(column).nullable()
        || (Memory.getByte(address() + layout.validity(column) + row / 8) >> row % 8 & 1) == 1;
  }

  /**
   * The bytes of one value, of any kind, in native byte order. No copy: valid until this table is
   * closed. The content for a null is undefined.
   */
  public ByteBuffer value(int column, int row) {
    Objects.checkIndex(row, layout.rows());
    TableColumn type = layout.columns().get(column);
    long from = row * type.width();
    long bytes = type.width();
    if (type.kind().isString()) {
      long offset = address() + layout.offsets(column) + 4L * row;
      from = Memory.getInt(offset);
      bytes = Memory.getInt(offset + 4) - from;
      Objects.checkFromIndexSize(from, bytes, layout.stringBytes(column));
    }
    return Memory.view(this, address() + layout.data(column) + from, Math.toIntExact(bytes))
        .order(ByteOrder.nativeOrder());
  }

  /**
   * Enqueues the copy to the device. This table may be closed at once.
   *
   * @param device memory for it
   * @param after events that must end first
   * @return a table whose event ends with the copy
   */
  public DeviceTable upload(CudaLane lane, CudaMemoryPool device, Event... after) {
    CudaMemory there = device.take(TableCopy.bytes(layout));
    long from = address();
    long to = there.address();
    Event copied =
        TableCopy.submit(
            lane,
            "the upload of " + layout,
            there,
            () -> lane.stream().copyToDevice(to, from, layout.bytes()),
            after);
    memory.usedUntil(copied);
    return DeviceTable.of(there, layout, copied);
  }

  /**
   * Enqueues the copy of a table to the host, after the table's event. The table may be closed at
   * once.
   *
   * @param pinned a pool of pinned memory
   * @return a table that may be read when its event has ended
   */
  public static HostTable download(CudaLane lane, DeviceTable table, CudaMemoryPool pinned) {
    TableLayout layout = table.layout();
    CudaMemory here = pinned.take(TableCopy.bytes(layout));
    long from = table.address();
    long to = here.address();
    Event copied =
        TableCopy.submit(
            lane,
            "the download of " + layout,
            here,
            () -> lane.stream().copyToHost(to, from, layout.bytes()),
            table.ready());
    table.usedUntil(copied);
    return new HostTable(here, layout, copied);
  }

  /** The address of the start. */
  public long address() {
    return memory.address();
  }

  /** Frees the memory when copies that use it have ended. */
  @Override
  public void close() {
    memory.close();
  }
}
