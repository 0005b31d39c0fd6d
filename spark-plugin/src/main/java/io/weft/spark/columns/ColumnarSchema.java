package io.weft.spark.columns;

import io.weft.spark.columns.ColumnLayout.UnsupportedTypeException;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
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
