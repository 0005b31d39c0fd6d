package io.weft.spark.columns;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/**
 * Measures how many of a batch's next rows fit into some bytes, before they are appended anywhere.
 * Strings and binary values count with what they have; a value of another type with its width.
 * Reused; for one task thread.
 */
public final class RowsAhead {
  /** Of an offset, or of a value without a width of its own. */
  private static final int SMALL_BYTES = 4;

  private final List<Sized> sized = new ArrayList<>();
  private final Selection selection = new Selection();
  private final long fixedBytes;
  private long[] bytes = new long[0];
  private byte[] nulls = new byte[0];
  private long fittingBytes;

  /** A column whose values differ in size, by its number. */
  private record Sized(int column, BytesSource source) {}

  /** For batches of a schema whose columns can travel. */
  public RowsAhead(StructType schema) {
    this(schema, new long[schema.size()]);
  }

  /**
   * For batches some of whose columns take the same for each value, whatever it is.
   *
   * @param widths for each column what a value of it takes, null or not; 0 where it is measured
   */
  public RowsAhead(StructType schema, long... widths) {
    long fixed = 0;
    int column = 0;
    for (ColumnLayout layout : ColumnarSchema.of(schema).columns()) {
      if (widths[column] > 0) {
        fixed += widths[column++];
        continue;
      }
      if (layout.form() == Form.STRING || layout.form() == Form.BINARY) {
        sized.add(new Sized(column, new BytesSource(layout)));
      }
      fixed += Math.max(SMALL_BYTES, layout.form().width());
      column++;
    }
    this.fixedBytes = fixed;
  }

  /**
   * How many rows from a first one fit.
   *
   * @param most rows that are looked at, within the batch
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

  /** Of the rows that were found to fit the last time. */
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
