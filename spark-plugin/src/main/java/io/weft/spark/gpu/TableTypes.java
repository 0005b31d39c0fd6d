package io.weft.spark.gpu;

import io.weft.shuffle.device.ColumnKind;
import io.weft.shuffle.device.TableColumn;
import io.weft.shuffle.device.TableLayout;
import io.weft.spark.columns.TensorMetadata;
import io.weft.tensor.TensorType;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.IntStream;
import org.apache.spark.sql.types.ArrayType;
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

/** Maps Spark types to columns of device tables. Stateless. */
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

  /** Limit of one piece of device memory, and so of one value. */
  private static final long MAX_TENSOR_BYTES = Integer.MAX_VALUE - 63L;

  private TableTypes() {}

  /** Why rows of a schema cannot be tables; empty if they can. */
  public static Optional<String> obstacle(StructType schema) {
    if (schema.isEmpty()) {
      return Optional.of("it has no columns");
    }
    return Arrays.stream(schema.fields())
        .filter(field -> column(field, true).isEmpty())
        .findFirst()
        .map(TableTypes::obstacle);
  }

  private static String obstacle(StructField field) {
    String what = field.dataType().simpleString();
    try {
      Optional<long[]> shape = TensorMetadata.shapeOf(field);
      if (shape.isPresent() && shape.get()[0] < 0) {
        what = "a tensor whose shape varies, " + Arrays.toString(shape.get());
      } else if (shape.isPresent()) {
        TensorType type = TensorMetadata.typeOf(field).orElseThrow();
        what += " and says that it is of " + type;
        what +=
            type.bytes() > MAX_TENSOR_BYTES ? ", which is %d bytes".formatted(type.bytes()) : "";
      }
    } catch (IllegalArgumentException e) {
      return e.getMessage();
    }
    return "column %s is %s, which a GPU table cannot hold".formatted(field.name(), what);
  }

  /**
   * The table column of a field. An array or binary column whose metadata declares a tensor of
   * fixed shape is a tensor column; other fields are columns of plain values.
   *
   * @param nullable whether there are validity bits
   * @return empty if a table cannot hold it
   */
  public static Optional<TableColumn> column(StructField field, boolean nullable) {
    Optional<TensorType> tensor = tensor(field);
    if (tensor.isPresent()) {
      return tensor
          .filter(type -> type.bytes() <= MAX_TENSOR_BYTES)
          .map(type -> TableColumn.tensors(type, nullable));
    }
    return kind(field.dataType()).map(kind -> TableColumn.of(kind, nullable));
  }

  private static Optional<TensorType> tensor(StructField field) {
    boolean isBinary = field.dataType() instanceof BinaryType;
    if (!isBinary && !(field.dataType() instanceof ArrayType)) {
      return Optional.empty();
    }
    try {
      return TensorMetadata.typeOf(field)
          .filter(
              type ->
                  isBinary
                      || TensorMetadata.fits(
                          ((ArrayType) field.dataType()).elementType(), type.dtype()));
    } catch (IllegalArgumentException e) {
      return Optional.empty(); // Only arrays are rejected; binary values are kept as they are.
    }
  }

  /**
   * The kind of plain values of a type on a device; empty if the device has none. Fields, which may
   * be tensors, go through {@link #column}.
   */
  static Optional<ColumnKind> kind(DataType type) {
    if (type instanceof DecimalType decimal) {
      return Optional.of(
          decimal.precision() <= Decimal.MAX_LONG_DIGITS()
              ? ColumnKind.DECIMAL64
              : ColumnKind.DECIMAL128);
    }
    if (type instanceof StringType) {
      return Optional.of(ColumnKind.STRING);
    }
    // Spark's type objects are instances of a subclass.
    ColumnKind kind = KINDS.get(type.getClass());
    return Optional.ofNullable(kind == null ? KINDS.get(type.getClass().getSuperclass()) : kind);
  }

  /**
   * Returns whether a device hashes a column as Spark does: strings only if compared byte by byte,
   * tensors never.
   */
  public static boolean isKey(StructField field) {
    return field.dataType() instanceof StringType string
        ? string.supportsBinaryEquality()
        : column(field, true).filter(column -> column.kind().isKey()).isPresent();
  }

  /** Returns whether a table has the columns of a schema. */
  static boolean fits(TableLayout layout, StructType schema) {
    List<TableColumn> columns = layout.columns();
    return columns.size() == schema.size()
        && IntStream.range(0, columns.size())
            .allMatch(c -> fits(columns.get(c), schema.fields()[c]));
  }

  private static boolean fits(TableColumn column, StructField field) {
    return column(field, column.nullable()).filter(column::equals).isPresent();
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
      if (!fits(column, field)) {
        String declared =
            tensor(field).map(TensorType::toString).orElse(field.dataType().simpleString());
        throw new IllegalArgumentException(
            "column %d of a table is %s, but %s is %s"
                .formatted(c, column, field.name(), declared));
      }
    }
  }
}
