package io.weft.spark.columns;

import io.weft.device.cuda.CudaMemoryPool;
import io.weft.memory.Memory;
import io.weft.shuffle.device.ColumnKind;
import io.weft.shuffle.device.HostTable;
import io.weft.shuffle.device.TableColumn;
import io.weft.shuffle.device.TableLayout;
import java.io.ByteArrayOutputStream;
import java.lang.ref.Reference;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.List;
import java.util.stream.Stream;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** Converts rows of Spark to a table on a GPU. */
final class SparkRows {
  /** Name of an extra column with row numbers. */
  static final String ROW_NUMBER = "row";

  private SparkRows() {}

  static HostTable table(CudaMemoryPool pinned, StructType schema, List<InternalRow> rows) {
    List<TableColumn> columns =
        Stream.of(schema.fields())
            .map(field -> TableColumn.of(kind(field.dataType()), field.nullable()))
            .toList();
    Values[] values = new Values[columns.size()];
    long[] stringBytes = new long[columns.size()];
    for (int c = 0; c < values.length; c++) {
      values[c] = new Values(schema.fields()[c], columns.get(c), c, rows);
      stringBytes[c] = columns.get(c).kind().isString() ? values[c].bytes.length : 0;
    }
    HostTable table = HostTable.allocate(pinned, TableLayout.of(columns, rows.size(), stringBytes));
    for (Values each : values) {
      each.putInto(table);
    }
    return table;
  }

  private static ColumnKind kind(DataType type) {
    if (type instanceof DecimalType decimal) {
      return decimal.precision() <= 18 ? ColumnKind.DECIMAL64 : ColumnKind.DECIMAL128;
    }
    return switch (type.typeName()) {
      case "boolean" -> ColumnKind.BOOLEAN;
      case "byte" -> ColumnKind.BYTE;
      case "short" -> ColumnKind.SHORT;
      case "integer" -> ColumnKind.INT;
      case "long" -> ColumnKind.LONG;
      case "float" -> ColumnKind.FLOAT;
      case "double" -> ColumnKind.DOUBLE;
      case "date" -> ColumnKind.DATE;
      case "timestamp", "timestamp_ntz" -> ColumnKind.TIMESTAMP;
      case "string" -> ColumnKind.STRING;
      case "binary" -> ColumnKind.BINARY;
      default -> throw new IllegalArgumentException(type.sql());
    };
  }

  /** One column: validity, offsets and bytes. */
  private static final class Values {
    private final TableColumn type;
    private final int column;
    private final ByteBuffer validity;
    private final ByteBuffer offsets;
    private final byte[] bytes;

    Values(StructField field, TableColumn type, int column, List<InternalRow> rows) {
      this.type = type;
      this.column = column;
      this.validity = ByteBuffer.allocateDirect(rows.size() / 8 + 1);
      this.offsets = ByteBuffer.allocateDirect(4 * rows.size() + 4).order(ByteOrder.nativeOrder());
      ByteArrayOutputStream all = new ByteArrayOutputStream();
      boolean isNumber = field.name().equals(ROW_NUMBER);
      for (int row = 0; row < rows.size(); row++) {
        offsets.putInt(all.size());
        if (isNumber) {
          all.writeBytes(little(4).putInt(row).array());
        } else if (rows.get(row).isNullAt(column)) {
          all.writeBytes(new byte[(int) type.width()]);
        } else {
          validity.put(row / 8, (byte) (validity.get(row / 8) | 1 << row % 8));
          all.writeBytes(value(field.dataType(), rows.get(row)));
        }
      }
      offsets.putInt(all.size());
      bytes = all.toByteArray();
    }

    private static ByteBuffer little(int size) {
      return ByteBuffer.allocate(size).order(ByteOrder.LITTLE_ENDIAN);
    }

    private byte[] value(DataType declared, InternalRow row) {
      return switch (type.kind()) {
        case BOOLEAN -> new byte[] {(byte) (row.getBoolean(column) ? 1 : 0)};
        case BYTE -> new byte[] {row.getByte(column)};
        case SHORT -> little(2).putShort(row.getShort(column)).array();
        case INT, DATE -> little(4).putInt(row.getInt(column)).array();
        case LONG, TIMESTAMP -> little(8).putLong(row.getLong(column)).array();
        case FLOAT -> little(4).putInt(Float.floatToRawIntBits(row.getFloat(column))).array();
        case DOUBLE -> little(8).putLong(Double.doubleToRawLongBits(row.getDouble(column))).array();
        case DECIMAL64, DECIMAL128 -> decimal((DecimalType) declared, row);
        case STRING -> row.getUTF8String(column).getBytes();
        case BINARY -> row.getBinary(column);
        case TENSOR -> throw new IllegalArgumentException("Spark has none");
      };
    }

    private byte[] decimal(DecimalType declared, InternalRow row) {
      BigInteger unscaled =
          row.getDecimal(column, declared.precision(), declared.scale())
              .toJavaBigDecimal()
              .unscaledValue();
      ByteBuffer value = little((int) type.width()).putLong(unscaled.longValue());
      return type.kind() == ColumnKind.DECIMAL64
          ? value.array()
          : value.putLong(unscaled.shiftRight(64).longValue()).array();
    }

    void putInto(HostTable table) {
      if (type.nullable()) {
        table.putValidity(column, Memory.addressOf(validity));
      }
      if (!type.kind().isString()) {
        table.putValues(column, ByteBuffer.wrap(bytes));
      } else {
        ByteBuffer direct = ByteBuffer.allocateDirect(bytes.length + 1).put(bytes);
        table.putStrings(column, Memory.addressOf(offsets), Memory.addressOf(direct));
        Reference.reachabilityFence(direct);
      }
      Reference.reachabilityFence(validity);
      Reference.reachabilityFence(offsets);
    }
  }
}
