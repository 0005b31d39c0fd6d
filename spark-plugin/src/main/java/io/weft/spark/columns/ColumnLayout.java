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
record ColumnLayout(DataType type, Form form, List<ColumnLayout> children) {
  private static final Map<Class<?>, Form> LEAVES =
      Map.ofEntries(
          Map.entry(PhysicalNullType.class, Form.NULL),
          Map.entry(PhysicalBooleanType.class, Form.BOOLEAN),
          Map.entry(PhysicalByteType.class, Form.BYTE),
          Map.entry(PhysicalShortType.class, Form.SHORT),
          Map.entry(PhysicalIntegerType.class, Form.INT),
          Map.entry(PhysicalLongType.class, Form.LONG),
          Map.entry(PhysicalFloatType.class, Form.FLOAT),
          Map.entry(PhysicalDoubleType.class, Form.DOUBLE),
          Map.entry(PhysicalStringType.class, Form.STRING),
          Map.entry(PhysicalBinaryType.class, Form.BINARY));

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
    Form leaf = leaf(physical);
    return leaf != null ? leaf(type, leaf) : nested(path, type, physical);
  }

  /** Nodes of this column in a chunk's header, including all children. */
  int nodes() {
    return 1 + children.stream().mapToInt(ColumnLayout::nodes).sum();
  }

  private static Form leaf(PhysicalDataType physical) {
    if (physical instanceof PhysicalDecimalType decimal) {
      return decimal.precision() <= Decimal.MAX_LONG_DIGITS() ? Form.DECIMAL64 : Form.DECIMAL128;
    }
    // The companion object of a physical type is a subclass of it.
    Form form = LEAVES.get(physical.getClass());
    if (form == null) {
      form = LEAVES.get(physical.getClass().getSuperclass());
    }
    return form == null && OpaqueTypes.isOpaque(physical) ? Form.OPAQUE : form;
  }

  private static ColumnLayout nested(String path, DataType type, PhysicalDataType physical) {
    if (physical instanceof PhysicalArrayType array) {
      return of(type, Form.LIST, of(path + ".element", array.elementType()));
    }
    if (physical instanceof PhysicalMapType map) {
      return of(
          type, Form.MAP, of(path + ".key", map.keyType()), of(path + ".value", map.valueType()));
    }
    if (physical instanceof PhysicalStructType struct) {
      return of(
          type,
          Form.STRUCT,
          Arrays.stream(struct.fields())
              .map((StructField field) -> of(path + "." + field.name(), field.dataType()))
              .toArray(ColumnLayout[]::new));
    }
    if (physical instanceof PhysicalCalendarIntervalType) {
      ColumnLayout days = leaf(DataTypes.IntegerType, Form.INT);
      return of(type, Form.INTERVAL, days, days, leaf(DataTypes.LongType, Form.LONG));
    }
    if (physical instanceof PhysicalVariantType) {
      ColumnLayout bytes = leaf(DataTypes.BinaryType, Form.BINARY);
      return of(type, Form.VARIANT, bytes, bytes);
    }
    throw new UnsupportedTypeException(path, type);
  }

  private static ColumnLayout leaf(DataType type, Form form) {
    return new ColumnLayout(type, form, List.of());
  }

  private static ColumnLayout of(DataType type, Form form, ColumnLayout... children) {
    return new ColumnLayout(type, form, List.of(children));
  }
}
