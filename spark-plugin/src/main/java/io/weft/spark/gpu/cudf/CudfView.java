package io.weft.spark.gpu.cudf;

import ai.rapids.cudf.ColumnVector;
import ai.rapids.cudf.ColumnView;
import ai.rapids.cudf.DType;
import ai.rapids.cudf.DeviceMemoryBuffer;
import ai.rapids.cudf.DeviceMemoryBufferView;
import ai.rapids.cudf.Table;
import io.weft.shuffle.device.DeviceTable;
import io.weft.shuffle.device.TableLayout;
import io.weft.spark.gpu.TableTypes;
import java.util.Optional;
import org.apache.spark.sql.types.StructType;

/**
 * A cudf table that views a Weft table in the same memory. Values, validity bits and offsets of
 * cudf columns have the format of {@link TableLayout}. cudf's alignment rules hold, as every
 * section begins at a multiple of 64 bytes and the length of validity is such a multiple. Null
 * strings have no bytes, unless a cudf function made them so; cudf's assertions, if enabled, then
 * find them. The view does not own the memory: its creator keeps the table until cudf's work is
 * complete. For one thread.
 */
final class CudfView implements AutoCloseable {
  private static final Optional<Long> NO_NULLS = Optional.of(0L);

  /** cudf counts the nulls, on its stream. */
  private static final Optional<Long> UNKNOWN_NULLS = Optional.empty();

  private final TableLayout layout;
  private final DeviceMemoryBuffer run;
  private Table table;

  private CudfView(DeviceTable batch) {
    this.layout = batch.layout();
    // Frees nothing, and counts references.
    this.run = DeviceMemoryBuffer.fromRmm(batch.address(), batch.bytes(), 0);
  }

  /**
   * Creates a view.
   *
   * @param batch which cudf's stream is ordered behind, as cudf counts nulls and strings
   * @param schema of its columns, which all have types in cudf
   * @throws IllegalArgumentException if the table has other columns
   */
  static CudfView of(DeviceTable batch, StructType schema) {
    TableTypes.requireColumns(batch.layout(), schema);
    CudfView view = new CudfView(batch);
    try {
      view.open(schema);
      return view;
    } catch (Throwable e) {
      view.run.close();
      throw e;
    }
  }

  private void open(StructType schema) {
    ColumnVector[] columns = new ColumnVector[schema.size()];
    try {
      for (int c = 0; c < columns.length; c++) {
        columns[c] = column(c, CudfTypes.of(schema.fields()[c]));
      }
      table = new Table(columns);
    } finally {
      for (ColumnVector column : columns) {
        if (column != null) {
          column.close(); // The table has its own reference.
        }
      }
    }
  }

  private ColumnVector column(int c, DType type) {
    // The vector takes ownership of the view's handle, so the view itself is not closed.
    return ColumnVector.fromViewWithContiguousAllocation(view(c, type).getNativeView(), run);
  }

  private ColumnView view(int c, DType type) {
    long rows = layout.rows();
    boolean nullable = layout.columns().get(c).nullable() && rows > 0;
    DeviceMemoryBufferView validity =
        nullable ? section(layout.validity(c), aligned((rows + 7) / 8)) : null;
    Optional<Long> nulls = nullable ? UNKNOWN_NULLS : NO_NULLS;
    DeviceMemoryBufferView values = section(layout.data(c), layout.dataBytes(c));
    if (!layout.columns().get(c).kind().isString()) {
      return new ColumnView(type, rows, nulls, values, validity);
    }
    DeviceMemoryBufferView offsets = section(layout.offsets(c), (rows + 1) * Integer.BYTES);
    if (type.equals(DType.STRING)) {
      return new ColumnView(type, rows, nulls, values, validity, offsets);
    }
    try (ColumnView bytes =
        new ColumnView(DType.UINT8, layout.dataBytes(c), NO_NULLS, values, null)) {
      return new ColumnView(type, rows, nulls, validity, offsets, new ColumnView[] {bytes});
    }
  }

  private DeviceMemoryBufferView section(long offset, long bytes) {
    return new DeviceMemoryBufferView(run.getAddress() + offset, bytes);
  }

  private static long aligned(long bytes) {
    return (bytes + TableLayout.ALIGNMENT - 1) & -TableLayout.ALIGNMENT;
  }

  /** The cudf table, which may be closed before the view. */
  Table table() {
    return table;
  }

  /**
   * Closes the table.
   *
   * @throws IllegalStateException if one of its columns is still referenced elsewhere
   */
  @Override
  public void close() {
    try {
      table.close();
    } finally {
      run.close();
    }
    if (run.getRefCount() > 0) {
      throw new IllegalStateException(
          ("a function on batches of cudf keeps columns of its batch, of %s. Their memory is freed"
                  + " with the batch: copy the columns that must stay")
              .formatted(layout));
    }
  }
}
