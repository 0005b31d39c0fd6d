package io.weft.spark.columns;

import io.weft.spark.columns.ColumnLayout.StorageForm;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/**
 * Measures how many of a batch's next rows fit into a number of bytes, before they are appended.
 * Strings and binary values count with their length, values of other types with their width.
 * Reused; for one task thread.
 */
public final class FittingRows {
  /** Bytes of an offset, or of a value without a fixed width. */
  private static final int SMALL_BYTES = 4;

  private final List<Sized> sized = new ArrayList<>();
  private final Selection selection = new Selection();
  private final long fixedBytes;
  private long[] bytes = new long[0];
  private byte[] nulls = new byte[0];
  private long fittingBytes;

  /** A column of values of variable size, by index. */
  private record Sized(int column, BytesSource source) {}

  /** Creates a measure for batches of a supported schema. */
  public FittingRows(StructType schema) {
    this(schema, new long[schema.size()]);
  }

  /**
   * Creates a measure for batches with some columns of a known size per value.
   *
   * @param widths bytes of each column's values, nulls included; 0 if the column is measured
   */
  public FittingRows(StructType schema, long... widths) {
    long fixed = 0;
    int column = 0;
    for (ColumnLayout layout : ColumnarSchema.of(schema).columns()) {
      if (widths[column] > 0) {
        fixed += widths[column++];
        continue;
      }
      if (layout.form() == StorageForm.STRING || layout.form() == StorageForm.BINARY) {
        sized.add(new Sized(column, new BytesSource(layout)));
      }
      fixed += Math.max(SMALL_BYTES, layout.form().width());
      column++;
    }
    this.fixedBytes = fixed;
  }

  /**
   * Returns how many rows fit, starting at the first.
   *
   * @param most maximum number of rows, within the batch
   * @param room bytes
   * @return 0 to {@code most}
   */
  public int fitting(ColumnarBatch batch, int first, int most, long room) {
    measure(batch, first, most);
    long left = room;
    int fitting = 0;
    while (fitting < most && bytes[fitting] <= left) {
      left -= bytes[fitting++];
    }
    fittingBytes = room - left;
    return fitting;
  }

  /** Bytes of the rows of the last result. */
  public long bytes() {
    return fittingBytes;
  }

  private void measure(ColumnarBatch batch, int first, int count) {
    if (bytes.length < count) {
      bytes = new long[count];
      nulls = new byte[count];
    }
    Arrays.fill(bytes, 0, count, fixedBytes);
    selection.run(0, first, count);
    for (Sized each : sized) {
      ColumnVector vector = batch.column(each.column);
      each.source.locate(vector, selection.rows(), count, nulls(vector, first, count));
      for (int i = 0; i < count; i++) {
        bytes[i] += each.source.length(i);
      }
      each.source.forget();
    }
  }

  private byte[] nulls(ColumnVector vector, int first, int count) {
    if (!vector.hasNull()) {
      return null;
    }
    for (int i = 0; i < count; i++) {
      nulls[i] = (byte) (vector.isNullAt(first + i) ? 1 : 0);
    }
    return nulls;
  }
}
