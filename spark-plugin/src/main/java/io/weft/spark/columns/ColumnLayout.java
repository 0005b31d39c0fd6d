package io.weft.spark.columns;

import io.weft.spark.compat.OpaqueTypes;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.types.PhysicalArrayType;
import org.apache.spark.sql.catalyst.types.PhysicalBinaryType;
import org.apache.spark.sql.catalyst.types.PhysicalBooleanType;
import org.apache.spark.sql.catalyst.types.PhysicalByteType;
import org.apache.spark.sql.catalyst.types.PhysicalCalendarIntervalType;
import org.apache.spark.sql.catalyst.types.PhysicalDataType;
import org.apache.spark.sql.catalyst.types.PhysicalDecimalType;
import org.apache.spark.sql.catalyst.types.PhysicalDoubleType;
import org.apache.spark.sql.catalyst.types.PhysicalFloatType;
import org.apache.spark.sql.catalyst.types.PhysicalIntegerType;
import org.apache.spark.sql.catalyst.types.PhysicalLongType;
import org.apache.spark.sql.catalyst.types.PhysicalMapType;
import org.apache.spark.sql.catalyst.types.PhysicalNullType;
import org.apache.spark.sql.catalyst.types.PhysicalShortType;
import org.apache.spark.sql.catalyst.types.PhysicalStringType;
import org.apache.spark.sql.catalyst.types.PhysicalStructType;
import org.apache.spark.sql.catalyst.types.PhysicalVariantType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.UserDefinedType;

/**
 * The layout of a column: its form and the layouts of its children. It is derived from the physical
 * type of the column's Spark type. New Spark types with a known physical type are therefore
 * supported automatically.
 *
 * @param type the type that vectors report; never a user-defined type
 * @param form of the column itself
 * @param children a list's element; a map's key and value; a struct's fields; an interval's months,
 *     days and microseconds; a variant's value and metadata; else empty
 */
record ColumnLayout(DataType type, StorageForm form, List<ColumnLayout> children) {
  private static final Map<Class<?>, StorageForm> LEAVES =
      Map.ofEntries(
          Map.entry(PhysicalNullType.class, StorageForm.NULL),
          Map.entry(PhysicalBooleanType.class, StorageForm.BOOLEAN),
          Map.entry(PhysicalByteType.class, StorageForm.BYTE),
          Map.entry(PhysicalShortType.class, StorageForm.SHORT),
          Map.entry(PhysicalIntegerType.class, StorageForm.INT),
          Map.entry(PhysicalLongType.class, StorageForm.LONG),
          Map.entry(PhysicalFloatType.class, StorageForm.FLOAT),
          Map.entry(PhysicalDoubleType.class, StorageForm.DOUBLE),
          Map.entry(PhysicalStringType.class, StorageForm.STRING),
          Map.entry(PhysicalBinaryType.class, StorageForm.BINARY));

  /**
   * Determines the layout of a column in a chunk.
   *
   * @param path the column's name, for the message
   * @throws UnsupportedTypeException if the type or a nested type has no layout
   */
  static ColumnLayout of(String path, DataType declared) {
    DataType type = declared;
    while (type instanceof UserDefinedType<?> udt) {
      type = udt.sqlType();
    }
    PhysicalDataType physical = PhysicalDataType.apply(type);
    StorageForm leaf = leaf(physical);
    return leaf != null ? leaf(type, leaf) : nested(path, type, physical);
  }

  /** Nodes of this column in a chunk's header, including all children. */
  int nodes() {
    return 1 + nodes(children);
  }

  /** Nodes of columns in a chunk's header, including all children. */
  static int nodes(List<ColumnLayout> columns) {
    int nodes = 0;
    for (ColumnLayout column : columns) {
      nodes += column.nodes();
    }
    return nodes;
  }

  private static StorageForm leaf(PhysicalDataType physical) {
    if (physical instanceof PhysicalDecimalType decimal) {
      return decimal.precision() <= Decimal.MAX_LONG_DIGITS()
          ? StorageForm.DECIMAL64
          : StorageForm.DECIMAL128;
    }
    // The companion object of a physical type is a subclass of it.
    StorageForm form = LEAVES.get(physical.getClass());
    if (form == null) {
      form = LEAVES.get(physical.getClass().getSuperclass());
    }
    return form == null && OpaqueTypes.isOpaque(physical) ? StorageForm.OPAQUE : form;
  }

  private static ColumnLayout nested(String path, DataType type, PhysicalDataType physical) {
    if (physical instanceof PhysicalArrayType array) {
      return of(type, StorageForm.LIST, of(path + ".element", array.elementType()));
    }
    if (physical instanceof PhysicalMapType map) {
      return of(
          type,
          StorageForm.MAP,
          of(path + ".key", map.keyType()),
          of(path + ".value", map.valueType()));
    }
    if (physical instanceof PhysicalStructType struct) {
      return of(
          type,
          StorageForm.STRUCT,
          Arrays.stream(struct.fields())
              .map((StructField field) -> of(path + "." + field.name(), field.dataType()))
              .toArray(ColumnLayout[]::new));
    }
    if (physical instanceof PhysicalCalendarIntervalType) {
      ColumnLayout days = leaf(DataTypes.IntegerType, StorageForm.INT);
      return of(type, StorageForm.INTERVAL, days, days, leaf(DataTypes.LongType, StorageForm.LONG));
    }
    if (physical instanceof PhysicalVariantType) {
      ColumnLayout bytes = leaf(DataTypes.BinaryType, StorageForm.BINARY);
      return of(type, StorageForm.VARIANT, bytes, bytes);
    }
    throw new UnsupportedTypeException(path, type);
  }

  private static ColumnLayout leaf(DataType type, StorageForm form) {
    return new ColumnLayout(type, form, List.of());
  }

  private static ColumnLayout of(DataType type, StorageForm form, ColumnLayout... children) {
    return new ColumnLayout(type, form, List.of(children));
  }

  /**
   * The storage format of a column's values in a chunk; see {@link ChunkFormat} for the buffers.
   */
  enum StorageForm {
    /** No buffers, every value is null. */
    NULL(0),
    /** One bit per value. */
    BOOLEAN(0),
    BYTE(1),
    SHORT(2),
    INT(4),
    LONG(8),
    FLOAT(4),
    DOUBLE(8),
    /** Decimals of up to 18 digits: the unscaled value in 8 bytes. */
    DECIMAL64(8),
    /** Longer decimals: the unscaled value in 16 bytes, two's complement. */
    DECIMAL128(16),
    /** UTF-8. */
    STRING(0),
    BINARY(0),
    /** Bytes that only Spark interprets; their accessor depends on the Spark version. */
    OPAQUE(0),
    LIST(0),
    MAP(0),
    STRUCT(0),
    /** A calendar interval: a struct of months, days and microseconds. */
    INTERVAL(0),
    /** A variant: a struct of its value's and its metadata's bytes. */
    VARIANT(0);

    private final int width;

    StorageForm(int width) {
      this.width = width;
    }

    /** Bytes of a value of fixed width, else 0. */
    int width() {
      return width;
    }
  }

  /** A column has a type without a columnar layout. */
  static final class UnsupportedTypeException extends IllegalArgumentException {
    private static final long serialVersionUID = 1L;

    UnsupportedTypeException(String path, DataType type) {
      super("column " + path + " has the type " + type.sql() + ", which has no columnar layout");
    }
  }
}
