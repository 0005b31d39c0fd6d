package io.weft.spark.gpu;

import io.weft.table.ColumnKind;
import io.weft.table.TableColumn;
import io.weft.table.TableLayout;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;

/** Which of Spark's types have a place in tables of a device. Stateless. */
public final class TableTypes {
  private static final Map<Class<?>, ColumnKind> KINDS =
      Map.ofEntries(
          Map.entry(BooleanType.class, ColumnKind.BOOLEAN),
          Map.entry(ByteType.class, ColumnKind.BYTE),
          Map.entry(ShortType.class, ColumnKind.SHORT),
          Map.entry(IntegerType.class, ColumnKind.INT),
          Map.entry(LongType.class, ColumnKind.LONG),
          Map.entry(FloatType.class, ColumnKind.FLOAT),
          Map.entry(DoubleType.class, ColumnKind.DOUBLE),
          Map.entry(DateType.class, ColumnKind.DATE),
          Map.entry(TimestampType.class, ColumnKind.TIMESTAMP),
          Map.entry(TimestampNTZType.class, ColumnKind.TIMESTAMP),
          Map.entry(BinaryType.class, ColumnKind.BINARY));

  private TableTypes() {}

  /** Why rows of a schema cannot be tables; empty where they can. */
  public static Optional<String> obstacle(StructType schema) {
    if (schema.isEmpty()) {
      return Optional.of("it has no columns");
    }
    for (StructField field : schema.fields()) {
      if (kind(field.dataType()).isEmpty()) {
        return Optional.of(
            "column %s is %s, which has no place in a table of a GPU"
                .formatted(field.name(), field.dataType().simpleString()));
      }
    }
    return Optional.empty();
  }

  /** What the values of a column are on a device; empty where they have no place there. */
  public static Optional<ColumnKind> kind(DataType type) {
    if (type instanceof DecimalType decimal) {
      return Optional.of(
          decimal.precision() <= Decimal.MAX_LONG_DIGITS()
              ? ColumnKind.DECIMAL64
              : ColumnKind.DECIMAL128);
    }
    if (type instanceof StringType) {
      return Optional.of(ColumnKind.STRING);
    }
    // The object that stands for a type is of a subclass of it.
    ColumnKind kind = KINDS.get(type.getClass());
    return Optional.ofNullable(kind == null ? KINDS.get(type.getClass().getSuperclass()) : kind);
  }

  /** Whether a device hashes a column as Spark does: strings only byte by byte. */
  public static boolean isKey(DataType type) {
    return type instanceof StringType string
        ? string.supportsBinaryEquality()
        : kind(type).filter(ColumnKind::isKey).isPresent();
  }

  /**
   * Verifies that a table has the columns of a schema.
   *
   * @throws IllegalArgumentException naming the first column that differs
   */
  public static void requireColumns(TableLayout layout, StructType schema) {
    List<TableColumn> columns = layout.columns();
    if (columns.size() != schema.size()) {
      throw new IllegalArgumentException(
          "a table of %d columns for a schema of %d".formatted(columns.size(), schema.size()));
    }
    for (int c = 0; c < columns.size(); c++) {
      StructField field = schema.fields()[c];
      TableColumn column = columns.get(c);
      if (kind(field.dataType()).filter(column.kind()::equals).isEmpty()) {
        throw new IllegalArgumentException(
            "column %d of a table is %s, but %s is %s"
                .formatted(c, column, field.name(), field.dataType().simpleString()));
      }
    }
  }
}
