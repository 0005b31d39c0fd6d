package io.weft.spark.columns;

import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.sql.vectorized.ColumnVector;

/** Builds columns of arrays. */
final class ListBuilder extends RepeatedBuilder {
  ListBuilder(ColumnLayout layout, BuilderContext context) {
    super(layout, context);
  }

  @Override
  long packedHead() {
    return 0;
  }

  @Override
  void appendElements(ColumnVector vector, int row, int partition) {
    child(0).appendAll(vector.getArray(row), partition);
  }

  @Override
  void appendValue(SpecializedGetters source, int ordinal, int partition) {
    child(0).appendAll(source.getArray(ordinal), partition);
    endValue(partition);
  }
}
