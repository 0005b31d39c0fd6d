package io.weft.spark.columns;

import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.sql.execution.vectorized.ConstantColumnVector;
import org.apache.spark.sql.execution.vectorized.WritableColumnVector;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.unsafe.types.CalendarInterval;

/** Builds columns of calendar intervals. */
final class IntervalBuilder extends CompositeBuilder {
  private final Object[] fields = new Object[3];
  private final GenericInternalRow row = new GenericInternalRow(fields);

  IntervalBuilder(ColumnLayout layout, BuilderContext context) {
    super(layout, context);
  }

  @Override
  void append(ColumnVector vector, Selection selection, byte[] parentNulls) {
    if (vector instanceof WritableColumnVector
        || vector instanceof BlockColumnVector
        || vector instanceof ConstantColumnVector) {
      super.append(vector, selection, parentNulls);
    } else {
      appendOneByOne(vector, selection, nulls(vector, selection, parentNulls));
    }
  }

  /** For vectors that store intervals in one buffer and have no children, like Arrow's. */
  private void appendOneByOne(ColumnVector vector, Selection selection, byte[] nulls) {
    int[] rows = selection.rows();
    for (int group = 0; group < selection.groups(); group++) {
      int partition = selection.partition(group);
      for (int i = selection.from(group); i < selection.from(group + 1); i++) {
        if (nulls != null && nulls[i] != 0) {
          appendNull(partition);
        } else {
          append(vector.getInterval(rows[i]), partition);
        }
      }
    }
  }

  @Override
  void appendValue(SpecializedGetters source, int ordinal, int partition) {
    append(source.getInterval(ordinal), partition);
  }

  /** Rows have room for an interval even if it is null. */
  @Override
  long packedInRows(int partition, int owners) {
    return 16L * owners;
  }

  @Override
  long packedInArrays(int partition) {
    return 16L * (rows(partition) - validity().nulls(partition));
  }

  private void append(CalendarInterval value, int partition) {
    fields[0] = value.months;
    fields[1] = value.days;
    fields[2] = value.microseconds;
    for (int i = 0; i < fields.length; i++) {
      child(i).append(row, i, partition);
    }
    endValue(partition);
  }
}
