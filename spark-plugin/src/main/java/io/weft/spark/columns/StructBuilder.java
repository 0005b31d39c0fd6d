package io.weft.spark.columns;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;

/** Builds columns of structs. */
final class StructBuilder extends CompositeBuilder {
  StructBuilder(ColumnLayout layout, BuilderContext context) {
    super(layout, context);
  }

  @Override
  void appendValue(SpecializedGetters source, int ordinal, int partition) {
    InternalRow struct = source.getStruct(ordinal, children());
    for (int i = 0; i < children(); i++) {
      child(i).append(struct, i, partition);
    }
    endValue(partition);
  }
}
