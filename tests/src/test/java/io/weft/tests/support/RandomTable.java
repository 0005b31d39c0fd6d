package io.weft.tests.support;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.Period;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.function.Function;
import java.util.function.Supplier;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * A table of random types and values, always the same for the same seed. Every type that a Parquet
 * file can hold occurs, nested up to three levels. The values include edge cases: nulls, empty and
 * long values, the least and the greatest.
 */
public final class RandomTable {
  private static final int DEEPEST = 3;
  private static final int HUNDRED_YEARS_OF_DAYS = 36_500;

  private static final List<String> SIMPLE =
      List.of(
          "BOOLEAN",
          "TINYINT",
          "SMALLINT",
          "INT",
          "BIGINT",
          "FLOAT",
          "DOUBLE",
          "STRING",
          "BINARY",
          "DATE",
          "TIMESTAMP",
          "TIMESTAMP_NTZ",
          "INTERVAL YEAR TO MONTH",
          "INTERVAL DAY TO SECOND",
          "STRING COLLATE UTF8_LCASE");

  private static final Map<String, Function<Random, Object>> VALUES = new HashMap<>();

  static {
    VALUES.put("BOOLEAN", Random::nextBoolean);
    VALUES.put("TINYINT", random -> (byte) random.nextInt());
    VALUES.put("SMALLINT", random -> (short) random.nextInt());
    VALUES.put("INT", random -> oneOf(random, Integer.MIN_VALUE, 0, random.nextInt()));
    VALUES.put("BIGINT", random -> oneOf(random, Long.MAX_VALUE, -1L, random.nextLong()));
    VALUES.put("FLOAT", random -> oneOf(random, -0.0f, Float.NaN, random.nextFloat()));
    VALUES.put(
        "DOUBLE", random -> oneOf(random, -0.0, Double.NEGATIVE_INFINITY, random.nextGaussian()));
    VALUES.put("STRING", RandomTable::text);
    VALUES.put("BINARY", RandomTable::bytes);
    VALUES.put(
        "DATE", random -> LocalDate.ofEpochDay(random.nextInt(HUNDRED_YEARS_OF_DAYS) - 20_000L));
    VALUES.put("TIMESTAMP", random -> dateTime(random).toInstant(ZoneOffset.UTC));
    VALUES.put("TIMESTAMP_NTZ", RandomTable::dateTime);
    VALUES.put("INTERVAL YEAR TO MONTH", random -> Period.ofMonths(random.nextInt()).normalized());
    VALUES.put(
        "INTERVAL DAY TO SECOND", random -> Duration.ofNanos(random.nextInt() * 1_000_000_000L));
  }

  private final Random random;
  private final StructType schema;
  private final List<Row> rows;

  /**
   * A table.
   *
   * @param columns at least 1
   * @param rows 0 or more
   */
  public RandomTable(long seed, int columns, int rows) {
    this.random = new Random(seed);
    this.schema = struct(columns, 1);
    this.rows = new ArrayList<>();
    for (int row = 0; row < rows; row++) {
      this.rows.add(row(schema));
    }
  }

  /** Its columns: c0, c1 and so on. */
  public StructType schema() {
    return schema;
  }

  /** Its rows. */
  public List<Row> rows() {
    return rows;
  }

  private StructType struct(int columns, int depth) {
    StructType struct = new StructType();
    for (int column = 0; column < columns; column++) {
      struct = struct.add("c" + column, type(depth));
    }
    return struct;
  }

  private DataType type(int depth) {
    int kind = random.nextInt(depth < DEEPEST ? 10 : 6);
    return switch (kind) {
      case 0 -> decimal();
      case 7 -> DataTypes.createArrayType(type(depth + 1));
      case 8 -> DataTypes.createMapType(keyType(), type(depth + 1));
      case 9 -> struct(1 + random.nextInt(3), depth + 1);
      default -> DataType.fromDDL(SIMPLE.get(random.nextInt(SIMPLE.size())));
    };
  }

  /** Spark rejects maps whose keys have a collation. */
  private DataType keyType() {
    return random.nextBoolean() ? DataTypes.IntegerType : DataTypes.StringType;
  }

  private DataType decimal() {
    int precision = 1 + random.nextInt(38);
    return DataTypes.createDecimalType(precision, random.nextInt(precision + 1));
  }

  private Row row(StructType struct) {
    Object[] values = new Object[struct.size()];
    for (int field = 0; field < values.length; field++) {
      StructField column = struct.fields()[field];
      values[field] = nullOr(column.dataType());
    }
    return RowFactory.create(values);
  }

  private Object nullOr(DataType type) {
    return random.nextInt(5) == 0 ? null : value(type);
  }

  private Object value(DataType type) {
    if (type instanceof StructType struct) {
      return row(struct);
    } else if (type instanceof ArrayType array) {
      return repeated(() -> nullOr(array.elementType())).toArray();
    } else if (type instanceof MapType map) {
      return map(map);
    } else if (type instanceof DecimalType decimal) {
      BigInteger limit = BigInteger.TEN.pow(decimal.precision());
      BigInteger unscaled = new BigInteger(decimal.precision() * 3, random).mod(limit);
      return new BigDecimal(random.nextBoolean() ? unscaled : unscaled.negate(), decimal.scale());
    }
    return VALUES.get(simpleName(type)).apply(random);
  }

  private static String simpleName(DataType type) {
    String sql = type.sql();
    return sql.startsWith("STRING") ? "STRING" : sql;
  }

  private Map<Object, Object> map(MapType type) {
    Map<Object, Object> map = new LinkedHashMap<>();
    repeated(() -> map.put(value(type.keyType()), nullOr(type.valueType())));
    return map;
  }

  private List<Object> repeated(Supplier<Object> make) {
    List<Object> items = new ArrayList<>();
    int count = random.nextInt(4);
    for (int index = 0; index < count; index++) {
      items.add(make.get());
    }
    return items;
  }

  private static Object oneOf(Random random, Object... values) {
    return values[Math.min(random.nextInt(8), values.length - 1)];
  }

  private static String text(Random random) {
    int length = random.nextInt(20) == 0 ? 3000 : random.nextInt(24);
    StringBuilder text = new StringBuilder();
    random.ints(length, 0, 4).forEach(kind -> text.append("aZ\u00e9\u4e16".charAt(kind)));
    return text.toString();
  }

  private static byte[] bytes(Random random) {
    byte[] bytes = new byte[random.nextInt(40)];
    random.nextBytes(bytes);
    return bytes;
  }

  private static LocalDateTime dateTime(Random random) {
    long micros = Math.floorMod(random.nextLong(), 100L * 365 * 86_400 * 1_000_000);
    return LocalDateTime.ofInstant(Instant.EPOCH.plusNanos(micros * 1000), ZoneOffset.UTC);
  }
}
