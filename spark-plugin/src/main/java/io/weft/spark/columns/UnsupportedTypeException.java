package io.weft.spark.columns;

import org.apache.spark.sql.types.DataType;

/** A column has a type without a columnar layout. */
final class UnsupportedTypeException extends IllegalArgumentException {
  private static final long serialVersionUID = 1L;

  UnsupportedTypeException(String path, DataType type) {
    super("column " + path + " has the type " + type.sql() + ", which has no columnar layout");
  }
}
