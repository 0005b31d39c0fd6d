package io.weft.spark.columns;

import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.sql.vectorized.ColumnVector;

/** Builds columns of maps. */
final class MapBuilder extends RepeatedBuilder {
  MapBuilder(ColumnLayout layout, BuilderContext context) {
    super(layout, context);
  }

  /** The size of the keys. */
  @Override
  long packedHead() {
    return Long.BYTES;
  }

  @Override
  void appendElements(ColumnVector vector, int row, int partition) {
    appendEntries(vector.getMap(row), partition);
  }

  @Override
  void appendValue(SpecializedGetters source, int ordinal, int partition) {
    appendEntries(source.getMap(ordinal), partition);
    endValue(partition);
  }

  private void appendEntries(MapData map, int partition) {
    child(0).appendAll(map.keyArray(), partition);
    child(1).appendAll(map.valueArray(), partition);
  }
}
