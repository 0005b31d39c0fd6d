package io.weft.shuffle.device;

import io.weft.device.Event;
import io.weft.device.Lane;
import io.weft.device.cuda.CudaLane;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.CudaMemoryPool;
import io.weft.shuffle.device.Concatenation.ConcatenationKernels;
import io.weft.shuffle.device.Concatenation.ConcatenationPlan;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;

/**
 * Concatenates tables with the same columns on the device. Open it when an exchange is prepared,
 * because the driver compiles the kernels then. Thread-safe; each call may use another lane.
 */
public final class TableConcatenator implements AutoCloseable {
  private final CudaMemoryPool memory;
  private final CudaMemoryPool pinned;
  private final ConcatenationKernels kernels;

  private TableConcatenator(
      CudaMemoryPool memory, CudaMemoryPool pinned, ConcatenationKernels kernels) {
    this.memory = memory;
    this.pinned = pinned;
    this.kernels = kernels;
  }

  /**
   * Loads the kernels.
   *
   * @param memory device memory for the result, and 64 bytes for each column of each table
   * @param pinned pinned host memory for these 64 bytes
   * @throws io.weft.device.cuda.CudaException if the driver rejects the kernels
   */
  public static TableConcatenator open(CudaMemoryPool memory, CudaMemoryPool pinned) {
    return new TableConcatenator(memory, pinned, ConcatenationKernels.load(memory.device()));
  }

  /**
   * The layout of a concatenation. A column has validity if it has validity in one of the tables.
   *
   * @param tables at least one
   * @throws IllegalArgumentException if their columns differ, or they have too many rows or string
   *     bytes for one table
   */
  public static TableLayout layout(List<TableLayout> tables) {
    TableLayout first = tables.get(0);
    int count = first.columns().size();
    boolean[] nullable = new boolean[count];
    long[] strings = new long[count];
    long rows = 0;
    for (TableLayout table : tables) {
      requireSame(first, table);
      rows += table.rows();
      for (int c = 0; c < count; c++) {
        nullable[c] |= table.columns().get(c).nullable();
        strings[c] += table.stringBytes(c);
      }
    }
    if (rows > TableLayout.MAX_ROWS) {
      throw new IllegalArgumentException("a table of " + rows + " rows");
    }
    List<TableColumn> columns = new ArrayList<>();
    for (int c = 0; c < count; c++) {
      TableColumn column = first.columns().get(c);
      columns.add(new TableColumn(column.kind(), column.tensor(), nullable[c]));
    }
    return TableLayout.of(columns, (int) rows, strings);
  }

  private static void requireSame(TableLayout first, TableLayout other) {
    boolean same = first.columns().size() == other.columns().size();
    for (int c = 0; same && c < first.columns().size(); c++) {
      TableColumn one = first.columns().get(c);
      TableColumn two = other.columns().get(c);
      same = one.kind() == two.kind() && Objects.equals(one.tensor(), two.tensor());
    }
    if (!same) {
      throw new IllegalArgumentException(first + " and " + other + " cannot form one table");
    }
  }

  /**
   * Allocates memory for the result.
   *
   * @param tables their layouts, in their order; some of them have rows
   * @throws io.weft.device.cuda.NoRoomException if there is not enough memory now
   * @throws IllegalArgumentException as {@link #layout}
   */
  public Concatenation start(CudaLane lane, List<TableLayout> tables) {
    ConcatenationPlan plan = ConcatenationPlan.of(tables);
    CudaMemory here = pinned.take(plan.bytes());
    CudaMemory there = null;
    CudaMemory run = null;
    try {
      there = memory.take(plan.bytes());
      run = memory.take(TableCopy.bytes(plan.layout()));
      return new Concatenation(lane, kernels, plan, run, here, there);
    } catch (RuntimeException e) {
      here.close();
      if (there != null) {
        there.close();
      }
      if (run != null) {
        run.close();
      }
      throw e;
    }
  }

  /** Unloads the kernels after their running work. */
  @Override
  public void close() {
    kernels.close();
  }

  /** Common parts of copies of a table to and from a device. Stateless. */
  static final class TableCopy {
    private TableCopy() {}

    /** The bytes to allocate for a table; more than 0 even without columns. */
    static long bytes(TableLayout layout) {
      return Math.max(TableLayout.ALIGNMENT, layout.bytes());
    }

    /** Enqueues a copy into newly allocated memory. If that fails, the memory is freed. */
    static Event submit(
        CudaLane lane, String what, CudaMemory made, Lane.Work copy, Event... after) {
      try {
        Event copied = lane.submit(what, copy, after);
        made.usedUntil(copied);
        return copied;
      } catch (RuntimeException e) {
        made.close();
        throw e;
      }
    }
  }
}
