package io.weft.table;

import io.weft.device.Event;
import io.weft.device.HostEvent;
import io.weft.device.cuda.CudaLane;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.CudaMemoryPool;
import io.weft.memory.Memory;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Objects;

/**
 * A table in pinned memory of the host, as it lies on a device: columns are put into it from any
 * memory, then it goes to the device as one copy, and comes back as one. Owns its memory.
 *
 * <p>Filled by one thread; read by many once it is ready.
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
   * A table to fill: all null where it is nullable, else zeros; strings are empty.
   *
   * @param pinned a pool of pinned memory
   */
  public static HostTable allocate(CudaMemoryPool pinned, TableLayout layout) {
    CudaMemory memory = pinned.take(RunCopy.bytes(layout));
    Memory.setMemory(memory.address(), layout.bytes(), (byte) 0);
    return new HostTable(memory, layout, HostEvent.completed("a table to fill"));
  }

  public TableLayout layout() {
    return layout;
  }

  /** Ends when the table is there; of one that is filled here it has ended. */
  public Event ready() {
    return ready;
  }

  /**
   * Puts validity bits, lowest bit first and 1 for a value, as Arrow has them.
   *
   * @param bits address of (rows + 7) / 8 bytes
   */
  public HostTable putValidity(int column, long bits) {
    long to = address() + layout.validity(column);
    long bytes = (layout.rows() + 7L) / 8;
    Memory.copy(bits, to, bytes);
    clearBehind(to);
    return this;
  }

  /** Every row of the column has a value. */
  public HostTable putAllValid(int column) {
    long to = address() + layout.validity(column);
    Memory.setMemory(to, (layout.rows() + 7L) / 8, (byte) -1);
    clearBehind(to);
    return this;
  }

  /** Bits of rows that are not there. */
  private void clearBehind(long validity) {
    int left = layout.rows() % 8;
    if (left != 0) {
      long last = validity + layout.rows() / 8;
      Memory.putByte(last, (byte) (Memory.getByte(last) & ((1 << left) - 1)));
    }
  }

  /**
   * Puts the values of a column of fixed width.
   *
   * @param values address of as many bytes as {@link TableLayout#dataBytes} says
   */
  public HostTable putValues(int column, long values) {
    requireFixed(column);
    Memory.copy(values, address() + layout.data(column), layout.dataBytes(column));
    return this;
  }

  /**
   * Puts the values of a column of fixed width.
   *
   * @param values as many bytes as {@link TableLayout#dataBytes} says, up to its limit; as it was
   *     afterwards
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
   * Puts booleans that are bits, as Arrow has them: lowest first, 1 for true.
   *
   * @param bits address of (rows + 7) / 8 bytes
   */
  public HostTable putBooleans(int column, long bits) {
    if (layout.columns().get(column).kind() != ColumnKind.BOOLEAN) {
      throw new IllegalArgumentException("column " + column + " of " + layout + " is no boolean");
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
   * Puts the strings of a column, as Arrow has them.
   *
   * @param offsets address of rows + 1 offsets of 4 bytes, of which the first need not be 0
   * @param bytes what the offsets count from
   * @throws IllegalArgumentException when an offset is less than the one before, or the strings
   *     have not as many bytes as the layout says
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
   * The bytes of one value, whatever its kind; no copy, in the order of the machine, there as long
   * as this is open. What it holds where there is a null is undefined.
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
   * Enqueues the copy to the device; this may be closed at once.
   *
   * @param device memory for it
   * @param after what has to end before
   * @return a table whose event ends with the copy
   */
  public DeviceTable upload(CudaLane lane, CudaMemoryPool device, Event... after) {
    CudaMemory there = device.take(RunCopy.bytes(layout));
    long from = address();
    long to = there.address();
    Event copied =
        RunCopy.submit(
            lane,
            "the upload of " + layout,
            there,
            () -> lane.stream().copyToDevice(to, from, layout.bytes()),
            after);
    memory.usedUntil(copied);
    return DeviceTable.of(there, layout, copied);
  }

  /**
   * Enqueues the copy of a table to the host, behind the table's event; the table may be closed at
   * once.
   *
   * @param pinned a pool of pinned memory
   * @return a table that may be read when its event has ended
   */
  public static HostTable download(CudaLane lane, DeviceTable table, CudaMemoryPool pinned) {
    TableLayout layout = table.layout();
    CudaMemory here = pinned.take(RunCopy.bytes(layout));
    long from = table.address();
    long to = here.address();
    Event copied =
        RunCopy.submit(
            lane,
            "the download of " + layout,
            here,
            () -> lane.stream().copyToHost(to, from, layout.bytes()),
            table.ready());
    table.usedUntil(copied);
    return new HostTable(here, layout, copied);
  }

  /** Where the run begins. */
  public long address() {
    return memory.address();
  }

  /** Gives the memory back when copies that use it have ended. */
  @Override
  public void close() {
    memory.close();
  }
}
