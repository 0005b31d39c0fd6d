package io.weft.spark.columns;

import io.weft.spark.columns.ColumnLayout.UnsupportedTypeException;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.OptionalDouble;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.StructType;

/** The layouts of a schema's columns, in the schema's order. Immutable. */
public final class ColumnarSchema {
  private final List<ColumnLayout> columns;
  private final int nodes;

  private ColumnarSchema(List<ColumnLayout> columns) {
    this.columns = columns;
    this.nodes = ColumnLayout.nodes(columns);
  }

  /**
   * Returns why batches of a schema are not supported.
   *
   * @return the first unsupported column and its type; empty if all columns are supported
   */
  public static Optional<String> unsupportedReason(StructType schema) {
    try {
      of(schema);
      return Optional.empty();
    } catch (UnsupportedTypeException e) {
      return Optional.of(e.getMessage());
    }
  }

  /**
   * Returns the size of rows on the rows route as a multiple of the size of the same values in
   * columns.
   *
   * @return empty unless each column has values of 1 to 8 bytes and is no decimal
   */
  public static OptionalDouble rowsPerColumns(StructType schema) {
    int row = Long.BYTES + UnsafeRow.calculateBitSetWidthInBytes(schema.size());
    int values = 0;
    for (ColumnLayout column : of(schema).columns()) {
      int width = column.form().width();
      if (width == 0 || column.type() instanceof DecimalType) {
        return OptionalDouble.empty();
      }
      values += width;
      row += Long.BYTES;
    }
    return values == 0 ? OptionalDouble.empty() : OptionalDouble.of((double) row / values);
  }

  /**
   * Determines the layouts of a schema.
   *
   * @throws UnsupportedTypeException if a column is not supported
   */
  static ColumnarSchema of(StructType schema) {
    return new ColumnarSchema(
        Arrays.stream(schema.fields())
            .map(field -> ColumnLayout.of(field.name(), field.dataType()))
            .toList());
  }

  List<ColumnLayout> columns() {
    return columns;
  }

  /** Nodes in a chunk's header. */
  int nodes() {
    return nodes;
  }
}
