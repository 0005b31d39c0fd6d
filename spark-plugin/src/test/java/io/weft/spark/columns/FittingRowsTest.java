package io.weft.spark.columns;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.charset.StandardCharsets;
import org.apache.spark.sql.execution.vectorized.OnHeapColumnVector;
import org.apache.spark.sql.execution.vectorized.WritableColumnVector;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Rows are measured by their own size, not by earlier rows. */
class FittingRowsTest {
  private static final StructType SCHEMA = new StructType().add("id", "long").add("s", "string");
  private static final int SMALL_ROWS = 100;
  private static final int ROWS = 200;

  /** A value and an offset. */
  private static final int FIXED_BYTES = 8 + 4;

  /** Nulls first, then strings of 1000 bytes. */
  private static ColumnarBatch batch(boolean ofSpark) {
    WritableColumnVector[] columns = OnHeapColumnVector.allocateColumns(ROWS, SCHEMA);
    byte[] text = "x".repeat(1000).getBytes(StandardCharsets.UTF_8);
    for (int row = 0; row < ROWS; row++) {
      columns[0].putLong(row, row);
      if (row < SMALL_ROWS) {
        columns[1].putNull(row);
      } else {
        columns[1].putByteArray(row, text);
      }
    }
    ColumnVector strings = ofSpark ? columns[1] : new ForeignVector(columns[1]);
    return new ColumnarBatch(new ColumnVector[] {columns[0], strings}, ROWS);
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void asManyRowsAsFit(boolean ofSpark) {
    FittingRows ahead = new FittingRows(SCHEMA);
    try (ColumnarBatch batch = batch(ofSpark)) {
      long small = (long) SMALL_ROWS * FIXED_BYTES;
      assertThat(ahead.fitting(batch, 0, ROWS, small)).isEqualTo(SMALL_ROWS);
      assertThat(ahead.fitting(batch, 0, ROWS, small + 3 * 1012)).isEqualTo(SMALL_ROWS + 3);
      assertThat(ahead.fitting(batch, 0, ROWS, small + 3 * 1012 - 1)).isEqualTo(SMALL_ROWS + 2);
      assertThat(ahead.fitting(batch, 0, 10, Long.MAX_VALUE)).isEqualTo(10);
      assertThat(ahead.fitting(batch, SMALL_ROWS, 10, 1011)).isZero();
      assertThat(ahead.fitting(batch, ROWS - 1, 1, 1012)).isEqualTo(1);
      assertThat(ahead.fitting(batch, 0, ROWS, -1)).isZero();
    }
  }
}
