package io.weft.spark.columns;

import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.unsafe.types.VariantVal;

/** Builds columns of variants. */
final class VariantBuilder extends CompositeBuilder {
  VariantBuilder(ColumnLayout layout, BuilderContext context) {
    super(layout, context);
  }

  @Override
  void appendValue(SpecializedGetters source, int ordinal, int partition) {
    VariantVal value = source.getVariant(ordinal);
    ((BytesBuilder) child(0)).appendValue(value.getValue(), partition);
    ((BytesBuilder) child(1)).appendValue(value.getMetadata(), partition);
    endValue(partition);
  }

  @Override
  long packedInRows(int partition, int owners) {
    BytesBuilder values = (BytesBuilder) child(0);
    BytesBuilder metadata = (BytesBuilder) child(1);
    long bytes = 0;
    for (int row = 0; row < rows(partition); row++) {
      if (!isNull(partition, row)) {
        bytes += packedBytes(4L + values.length(partition, row) + metadata.length(partition, row));
      }
    }
    return bytes;
  }
}
