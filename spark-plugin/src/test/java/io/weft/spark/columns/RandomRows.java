package io.weft.spark.columns;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.stream.IntStream;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.ArrayBasedMapData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.CalendarInterval;
import org.apache.spark.unsafe.types.UTF8String;
import org.apache.spark.unsafe.types.VariantVal;

/** Random rows of any schema in Spark's internal format, reproducible by seed. */
final class RandomRows {
  private final Random random;
  private final double nulls;

  /**
   * @param nulls share of nulls at every level, 0 to 1
   */
  RandomRows(long seed, double nulls) {
    this.random = new Random(seed);
    this.nulls = nulls;
  }

  List<InternalRow> rows(StructType schema, int count) {
    ColumnarSchema layout = ColumnarSchema.of(schema);
    List<InternalRow> rows = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      rows.add(new GenericInternalRow(values(layout.columns())));
    }
    return rows;
  }

  private Object[] values(List<ColumnLayout> columns) {
    return columns.stream().map(this::value).toArray();
  }

  /** A value or, with a probability, null. */
  Object value(ColumnLayout layout) {
    return random.nextDouble() < nulls ? null : present(layout);
  }

  private Object present(ColumnLayout layout) {
    return switch (layout.form()) {
      case NULL -> null;
      case BOOLEAN -> random.nextBoolean();
      case BYTE -> (byte) random.nextInt();
      case SHORT -> (short) random.nextInt();
      case INT -> random.nextInt(4) == 0 ? random.nextInt(10) : random.nextInt();
      case LONG -> random.nextInt(4) == 0 ? random.nextInt(10) : random.nextLong();
      case FLOAT -> floating((float) random.nextGaussian()).floatValue();
      case DOUBLE -> floating(random.nextGaussian());
      case DECIMAL64, DECIMAL128 -> decimal((DecimalType) layout.type());
      case STRING -> UTF8String.fromString(string());
      case BINARY -> bytes();
      case OPAQUE -> OpaqueValues.of(layout.type(), bytes());
      case LIST -> list(layout);
      case MAP -> map(layout);
      case STRUCT -> struct(layout);
      case INTERVAL -> new CalendarInterval(random.nextInt(), random.nextInt(), random.nextLong());
      case VARIANT -> new VariantVal(bytes(), bytes());
    };
  }

  private Double floating(double ordinary) {
    return switch (random.nextInt(8)) {
      case 0 -> 0.0;
      case 1 -> -0.0;
      case 2 -> Double.NaN;
      case 3 -> Double.NEGATIVE_INFINITY;
      default -> ordinary;
    };
  }

  private Decimal decimal(DecimalType type) {
    int digits = random.nextInt(type.precision() + 1);
    BigInteger unscaled = new BigInteger(digits == 0 ? "0" : "9".repeat(digits));
    if (random.nextBoolean()) {
      unscaled = new BigInteger(unscaled.bitLength() + 1, random).mod(unscaled.add(BigInteger.ONE));
    }
    BigInteger signed = random.nextBoolean() ? unscaled : unscaled.negate();
    return Decimal.apply(new BigDecimal(signed, type.scale()), type.precision(), type.scale());
  }

  private String string() {
    int length = random.nextInt(10) == 0 ? random.nextInt(200) : random.nextInt(12);
    StringBuilder text = new StringBuilder();
    for (int i = 0; i < length; i++) {
      text.appendCodePoint(random.nextInt(5) == 0 ? 0x1F600 + random.nextInt(50) : 'a' + i % 26);
    }
    return text.toString();
  }

  private byte[] bytes() {
    byte[] bytes = new byte[random.nextInt(20)];
    random.nextBytes(bytes);
    return bytes;
  }

  private GenericArrayData list(ColumnLayout layout) {
    return new GenericArrayData(
        elements(
            layout.children().get(0),
            random.nextInt(6),
            ((ArrayType) layout.type()).containsNull()));
  }

  private Object[] elements(ColumnLayout layout, int count, boolean nullable) {
    return IntStream.range(0, count)
        .mapToObj(i -> nullable ? value(layout) : present(layout))
        .toArray();
  }

  private GenericInternalRow struct(ColumnLayout layout) {
    StructField[] fields = ((StructType) layout.type()).fields();
    Object[] values = new Object[fields.length];
    for (int i = 0; i < fields.length; i++) {
      ColumnLayout field = layout.children().get(i);
      values[i] = fields[i].nullable() ? value(field) : present(field);
    }
    return new GenericInternalRow(values);
  }

  private ArrayBasedMapData map(ColumnLayout layout) {
    int count = random.nextInt(5);
    Object[] keys = elements(layout.children().get(0), count, false);
    Object[] values = elements(layout.children().get(1), count, true);
    return new ArrayBasedMapData(new GenericArrayData(keys), new GenericArrayData(values));
  }

  /** The schema of columns c0, c1, ... of those types, all nullable. */
  static StructType schema(List<DataType> types) {
    StructType schema = new StructType();
    for (int i = 0; i < types.size(); i++) {
      schema = schema.add("c" + i, types.get(i), true);
    }
    return schema;
  }
}
