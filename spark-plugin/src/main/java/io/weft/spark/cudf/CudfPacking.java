package io.weft.spark.cudf;

import ai.rapids.cudf.Table;
import io.weft.device.Event;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.CudaStream;
import io.weft.spark.gpu.DeviceWork;
import io.weft.table.DeviceTable;
import io.weft.table.TableColumn;
import io.weft.table.TableLayout;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.types.StructType;

/**
 * Copies a cudf table into one run, on cudf's own stream. The copies are therefore ordered behind
 * the work that makes the table, and before any reuse of memory that cudf frees later. For one
 * thread.
 */
final class CudfPacking {
  private final List<CudfColumn> columns;
  private final TableLayout layout;
  private final DeviceWork work;
  private final CudaStream stream;

  private CudfPacking(
      List<CudfColumn> columns, TableLayout layout, DeviceWork work, CudaStream stream) {
    this.columns = columns;
    this.layout = layout;
    this.work = work;
    this.stream = stream;
  }

  /**
   * Reads the columns of a cudf table.
   *
   * @param stream of cudf and this thread
   * @throws IllegalArgumentException if it does not have the declared columns, or is too large
   */
  static CudfPacking of(Table table, DeviceWork work, CudaStream stream) {
    StructType schema = work.schema();
    if (table.getNumberOfColumns() != schema.size()) {
      throw new IllegalArgumentException(
          "a function of cudf made a table of %d columns; declared are %d: %s"
              .formatted(table.getNumberOfColumns(), schema.size(), schema.simpleString()));
    }
    if (table.getRowCount() > TableLayout.MOST_ROWS) {
      throw new IllegalArgumentException(
          "a function of cudf made a table of %d rows; a batch has at most %d"
              .formatted(table.getRowCount(), TableLayout.MOST_ROWS));
    }
    List<CudfColumn> columns = new ArrayList<>();
    List<TableColumn> types = new ArrayList<>();
    long[] stringBytes = new long[schema.size()];
    for (int c = 0; c < schema.size(); c++) {
      CudfColumn column = CudfColumn.of(table.getColumn(c), schema.fields()[c]);
      columns.add(column);
      types.add(column.type());
      stringBytes[c] = column.stringBytes();
    }
    TableLayout layout = TableLayout.of(types, (int) table.getRowCount(), stringBytes);
    return new CudfPacking(columns, layout, work, stream);
  }

  /** Enqueues the copies; afterwards the cudf table may be closed on this thread. */
  DeviceTable pack() {
    CudaMemory memory = work.take(layout.bytes());
    try {
      copy(memory.address());
      Event copied = work.lane().after("a table of cudf, " + layout, stream);
      memory.usedUntil(copied);
      return DeviceTable.of(memory, layout, copied);
    } catch (Throwable e) {
      giveBack(memory, e);
      throw e;
    }
  }

  private void giveBack(CudaMemory memory, Throwable cause) {
    try (memory) {
      CudfUse.end("copies of a table of cudf", work, stream, memory::usedUntil, cause);
    }
  }

  private void copy(long run) {
    for (int c = 0; c < columns.size(); c++) {
      CudfColumn column = columns.get(c);
      if (column.type().nullable()) {
        put(column.validity(), run + layout.validity(c), (layout.rows() + 7L) / 8);
      }
      if (column.type().kind().isString()) {
        putOffsets(column.offsets(), run + layout.offsets(c));
      }
      put(column.data(), run + layout.data(c), layout.dataBytes(c));
    }
  }

  private void putOffsets(long from, long to) {
    if (layout.rows() > 0) {
      put(from, to, (layout.rows() + 1L) * Integer.BYTES);
    } else {
      // A cudf column without rows may have no offsets; a table has one offset, zero.
      stream.clear(to, TableLayout.ALIGNMENT);
    }
  }

  /** Enqueues the copy of a section, and zeros up to the next one. */
  private void put(long from, long to, long bytes) {
    if (bytes > 0) {
      stream.copyOnDevice(to, from, bytes);
    }
    long rest = -bytes & (TableLayout.ALIGNMENT - 1);
    if (rest > 0) {
      stream.clear(to + bytes, rest);
    }
  }
}
