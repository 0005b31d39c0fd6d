package io.weft.spark.columns;

import io.weft.spark.compat.OpaqueTypes;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.sql.execution.vectorized.WritableColumnVector;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.unsafe.types.CalendarInterval;
import org.apache.spark.unsafe.types.VariantVal;

/** Appends values of rows to Spark's own writable vectors, for any type. */
final class VectorFiller {
  private VectorFiller() {}

  static void append(
      ColumnLayout layout, SpecializedGetters source, int ordinal, WritableColumnVector target) {
    if (source.isNullAt(ordinal)) {
      appendNull(layout, target);
      return;
    }
    switch (layout.form()) {
      case NULL -> target.appendNull();
      case BOOLEAN -> target.appendBoolean(source.getBoolean(ordinal));
      case BYTE -> target.appendByte(source.getByte(ordinal));
      case SHORT -> target.appendShort(source.getShort(ordinal));
      case INT -> target.appendInt(source.getInt(ordinal));
      case LONG -> target.appendLong(source.getLong(ordinal));
      case FLOAT -> target.appendFloat(source.getFloat(ordinal));
      case DOUBLE -> target.appendDouble(source.getDouble(ordinal));
      case DECIMAL64, DECIMAL128 -> appendDecimal(layout.type(), source, ordinal, target);
      case STRING -> appendBytes(source.getUTF8String(ordinal).getBytes(), target);
      case BINARY -> appendBytes(source.getBinary(ordinal), target);
      case OPAQUE ->
          appendBytes(new OpaqueTypes.Reader(layout.type()).bytes(source, ordinal), target);
      case LIST -> appendList(layout, source.getArray(ordinal), target);
      case MAP -> appendMap(layout, source.getMap(ordinal), target);
      case STRUCT -> appendStruct(layout, source, ordinal, target);
      case INTERVAL -> appendInterval(source.getInterval(ordinal), target);
      case VARIANT -> appendVariant(source.getVariant(ordinal), target);
    }
  }

  private static void appendNull(ColumnLayout layout, WritableColumnVector target) {
    switch (layout.form()) {
      case STRUCT, INTERVAL, VARIANT -> {
        target.reserve(target.getElementsAppended() + 1);
        target.putNull(target.getElementsAppended());
        target.addElementsAppended(1);
        for (int i = 0; i < layout.children().size(); i++) {
          appendNull(layout.children().get(i), target.getChild(i));
        }
      }
      default -> target.appendNull();
    }
  }

  private static void appendDecimal(
      DataType type, SpecializedGetters source, int ordinal, WritableColumnVector target) {
    DecimalType decimal = (DecimalType) type;
    target.reserve(target.getElementsAppended() + 1);
    target.putNotNull(target.getElementsAppended());
    target.putDecimal(
        target.getElementsAppended(),
        source.getDecimal(ordinal, decimal.precision(), decimal.scale()),
        decimal.precision());
    target.addElementsAppended(1);
  }

  private static void appendBytes(byte[] bytes, WritableColumnVector target) {
    target.appendByteArray(bytes, 0, bytes.length);
  }

  private static void appendList(
      ColumnLayout layout, ArrayData array, WritableColumnVector target) {
    target.appendArray(array.numElements());
    for (int i = 0; i < array.numElements(); i++) {
      append(layout.children().get(0), array, i, target.arrayData());
    }
  }

  private static void appendMap(ColumnLayout layout, MapData map, WritableColumnVector target) {
    target.reserve(target.getElementsAppended() + 1);
    target.getChild(0).reserveAdditional(map.numElements());
    target.putArray(
        target.getElementsAppended(), target.getChild(0).getElementsAppended(), map.numElements());
    target.addElementsAppended(1);
    for (int i = 0; i < map.numElements(); i++) {
      append(layout.children().get(0), map.keyArray(), i, target.getChild(0));
      append(layout.children().get(1), map.valueArray(), i, target.getChild(1));
    }
  }

  private static void appendStruct(
      ColumnLayout layout, SpecializedGetters source, int ordinal, WritableColumnVector target) {
    int fields = layout.children().size();
    InternalRow struct = source.getStruct(ordinal, fields);
    target.appendStruct(false);
    for (int i = 0; i < fields; i++) {
      append(layout.children().get(i), struct, i, target.getChild(i));
    }
  }

  private static void appendInterval(CalendarInterval value, WritableColumnVector target) {
    target.appendStruct(false);
    target.getChild(0).appendInt(value.months);
    target.getChild(1).appendInt(value.days);
    target.getChild(2).appendLong(value.microseconds);
  }

  private static void appendVariant(VariantVal value, WritableColumnVector target) {
    target.appendStruct(false);
    appendBytes(value.getValue(), target.getChild(0));
    appendBytes(value.getMetadata(), target.getChild(1));
  }

  /** A field's layout. */
  static ColumnLayout layout(StructField field) {
    return ColumnLayout.of(field.name(), field.dataType());
  }
}
