package io.weft.spark.feed.arrow;

import io.weft.spark.columns.BlockColumnVector;
import io.weft.spark.columns.ChunkView;
import io.weft.spark.columns.TensorMetadata;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.arrow.vector.types.DateUnit;
import org.apache.arrow.vector.types.FloatingPointPrecision;
import org.apache.arrow.vector.types.IntervalUnit;
import org.apache.arrow.vector.types.TimeUnit;
import org.apache.arrow.vector.types.pojo.ArrowType;
import org.apache.arrow.vector.types.pojo.Field;
import org.apache.arrow.vector.types.pojo.FieldType;
import org.apache.arrow.vector.types.pojo.Schema;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DayTimeIntervalType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.UserDefinedType;
import org.apache.spark.sql.types.YearMonthIntervalType;

/**
 * The Arrow schema that describes a feed's chunks as they are in memory.
 *
 * <p>Tensor columns of one shape are {@code FixedSizeList} with the canonical extension {@code
 * arrow.fixed_shape_tensor}; other tensor columns are lists. Decimals of up to 18 digits have 8
 * bytes, a width that older Arrow readers do not support. They are therefore int64, unscaled, with
 * precision and scale in the metadata {@value #DECIMAL_KEY}. bfloat16 is int16. All other types are
 * as in Spark's own Arrow conversion.
 */
final class ArrowFields {
  static final String EXTENSION_NAME = "ARROW:extension:name";
  static final String EXTENSION_METADATA = "ARROW:extension:metadata";
  static final String FIXED_SHAPE_TENSOR = "arrow.fixed_shape_tensor";
  static final String DECIMAL_KEY = "weft.decimal";
  private static final String UTC = "UTC";

  private ArrowFields() {}

  /**
   * The schema of a feed.
   *
   * @throws IllegalArgumentException naming a column that has no Arrow form
   */
  static Schema of(StructType schema) {
    List<Field> fields = new ArrayList<>();
    for (int i = 0; i < schema.size(); i++) {
      StructField field = schema.fields()[i];
      Optional<TensorColumn> tensor =
          TensorColumn.of(schema, i)
              .filter(column -> column.source() != TensorColumn.Source.NUMBER);
      fields.add(
          tensor.isPresent() && tensor.get().fixed()
              ? tensor(tensor.get())
              : field(
                  field.name(),
                  field.dataType(),
                  field.nullable(),
                  tensor.map(ArrowFields::described).orElse(Map.of())));
    }
    return new Schema(fields);
  }

  private static Field tensor(TensorColumn column) {
    Map<String, String> metadata = new HashMap<>(described(column));
    metadata.put(EXTENSION_NAME, FIXED_SHAPE_TENSOR);
    metadata.put(EXTENSION_METADATA, "{\"shape\":%s}".formatted(json(column.shape())));
    ArrowType type = new ArrowType.FixedSizeList(Math.toIntExact(column.elements()));
    Field item = new Field("item", FieldType.notNullable(element(column)), null);
    return new Field(column.name(), new FieldType(false, type, null, metadata), List.of(item));
  }

  /** Metadata for tensor properties that no Arrow type expresses. */
  private static Map<String, String> described(TensorColumn column) {
    return Map.of(
        TensorMetadata.KEY,
        "{\"dtype\":\"%s\",\"shape\":%s}".formatted(column.dtype(), json(column.shape())));
  }

  static String json(long[] shape) {
    return Arrays.toString(shape).replace(" ", "");
  }

  private static ArrowType element(TensorColumn column) {
    return switch (column.dtype()) {
      case INT8 -> integer(8);
      case INT16, BFLOAT16 -> integer(16);
      case INT32 -> integer(32);
      case INT64 -> integer(64);
      case FLOAT16 -> floating(FloatingPointPrecision.HALF);
      case FLOAT32 -> floating(FloatingPointPrecision.SINGLE);
      case FLOAT64 -> floating(FloatingPointPrecision.DOUBLE);
    };
  }

  private static ArrowType integer(int bits) {
    return new ArrowType.Int(bits, true);
  }

  private static ArrowType floating(FloatingPointPrecision precision) {
    return new ArrowType.FloatingPoint(precision);
  }

  private static Field field(
      String name, DataType declared, boolean nullable, Map<String, String> metadata) {
    DataType type = declared;
    while (type instanceof UserDefinedType<?> udt) {
      type = udt.sqlType();
    }
    Map<String, String> all = new HashMap<>(metadata);
    if (type instanceof DecimalType decimal && inLong(decimal)) {
      all.put(DECIMAL_KEY, decimal.precision() + "," + decimal.scale());
    }
    FieldType fieldType = new FieldType(nullable, arrowType(name, type), null, all);
    return new Field(name, fieldType, children(name, type));
  }

  private static List<Field> children(String name, DataType type) {
    if (type instanceof ArrayType array) {
      return List.of(child(name, "item", array.elementType(), array.containsNull()));
    }
    if (type instanceof MapType map) {
      List<Field> entry =
          List.of(
              child(name, "key", map.keyType(), false),
              child(name, "value", map.valueType(), map.valueContainsNull()));
      return List.of(new Field("entries", FieldType.notNullable(new ArrowType.Struct()), entry));
    }
    if (type instanceof StructType struct) {
      return Arrays.stream(struct.fields())
          .map(field -> child(name, field.name(), field.dataType(), field.nullable()))
          .toList();
    }
    return List.of();
  }

  private static Field child(String path, String name, DataType type, boolean nullable) {
    Field field = field(path + "." + name, type, nullable, Map.of());
    return new Field(name, field.getFieldType(), field.getChildren());
  }

  private static boolean inLong(DecimalType decimal) {
    return decimal.precision() <= org.apache.spark.sql.types.Decimal.MAX_LONG_DIGITS();
  }

  private static ArrowType arrowType(String name, DataType type) {
    if (type instanceof DecimalType decimal) {
      return inLong(decimal)
          ? integer(64)
          : new ArrowType.Decimal(decimal.precision(), decimal.scale(), 128);
    }
    if (type instanceof StringType) {
      return new ArrowType.Utf8();
    }
    if (type instanceof ArrayType) {
      return new ArrowType.List();
    }
    if (type instanceof MapType) {
      return new ArrowType.Map(false);
    }
    if (type instanceof StructType) {
      return new ArrowType.Struct();
    }
    if (type instanceof YearMonthIntervalType) {
      return new ArrowType.Interval(IntervalUnit.YEAR_MONTH);
    }
    if (type instanceof DayTimeIntervalType) {
      return new ArrowType.Duration(TimeUnit.MICROSECOND);
    }
    return plain(name, type);
  }

  private static ArrowType plain(String name, DataType type) {
    return switch (type.typeName()) {
      case "boolean" -> new ArrowType.Bool();
      case "byte" -> integer(8);
      case "short" -> integer(16);
      case "integer" -> integer(32);
      case "long" -> integer(64);
      case "float" -> floating(FloatingPointPrecision.SINGLE);
      case "double" -> floating(FloatingPointPrecision.DOUBLE);
      case "binary" -> new ArrowType.Binary();
      case "date" -> new ArrowType.Date(DateUnit.DAY);
      case "timestamp" -> new ArrowType.Timestamp(TimeUnit.MICROSECOND, UTC);
      case "timestamp_ntz" -> new ArrowType.Timestamp(TimeUnit.MICROSECOND, null);
      case "void" -> new ArrowType.Null();
      default ->
          throw new IllegalArgumentException(
              "column %s: %s has no Arrow form in a feed; cast it or leave it out"
                  .formatted(name, type.simpleString()));
    };
  }

  /**
   * Visits the nodes and buffers of a chunk in the order of an Arrow record batch. Copies nothing.
   * For one thread.
   */
  static final class ArrowBuffers {
    private final Target target;

    /** Receives the nodes and buffers. */
    interface Target {
      /** Receives the next node, depth first. */
      void node(int values, int nulls);

      /** Receives the validity of a node without nulls; a chunk has no bitmap for such a node. */
      void allValid(int values);

      /** Receives the node's next buffer. */
      void buffer(long address, long bytes);
    }

    private ArrowBuffers(Target target) {
      this.target = target;
    }

    /** Visits all columns. */
    static void walk(StructType schema, Schema arrow, ChunkView chunk, Target target) {
      ArrowBuffers buffers = new ArrowBuffers(target);
      for (int i = 0; i < schema.size(); i++) {
        Field field = arrow.getFields().get(i);
        if (field.getType() instanceof ArrowType.FixedSizeList list) {
          TensorColumn column = TensorColumn.of(schema, i).orElseThrow();
          buffers.tensor(column, chunk.column(i), chunk.rows(), list.getListSize());
        } else {
          buffers.column(field, chunk.column(i), chunk.rows());
        }
      }
    }

    private void tensor(TensorColumn column, BlockColumnVector vector, int rows, int elements) {
      int count = Math.multiplyExact(rows, elements);
      target.node(rows, 0);
      target.allValid(rows);
      target.node(count, 0);
      target.allValid(count);
      target.buffer(column.values(vector), (long) count * column.dtype().bytes());
    }

    private void column(Field field, BlockColumnVector vector, int count) {
      target.node(count, vector.numNulls());
      ArrowType type = field.getType();
      if (type instanceof ArrowType.Null) {
        return;
      }
      if (vector.hasNull()) {
        target.buffer(vector.validity(), bits(count));
      } else {
        target.allValid(count);
      }
      List<Field> children = field.getChildren();
      if (type instanceof ArrowType.Struct) {
        for (int i = 0; i < children.size(); i++) {
          column(children.get(i), vector.getChild(i), count);
        }
      } else if (type instanceof ArrowType.List) {
        offsets(vector, count);
        column(children.get(0), vector.getChild(0), vector.offset(count));
      } else if (type instanceof ArrowType.Map) {
        map(children.get(0), vector, count);
      } else if (type instanceof ArrowType.Utf8 || type instanceof ArrowType.Binary) {
        offsets(vector, count);
        target.buffer(vector.values(), vector.offset(count));
      } else {
        target.buffer(vector.values(), fixedBytes(type, count));
      }
    }

    private void map(Field entries, BlockColumnVector vector, int count) {
      offsets(vector, count);
      int extent = vector.offset(count);
      target.node(extent, 0);
      target.allValid(extent);
      column(entries.getChildren().get(0), vector.getChild(0), extent);
      column(entries.getChildren().get(1), vector.getChild(1), extent);
    }

    private void offsets(BlockColumnVector vector, int count) {
      target.buffer(vector.offsets(), 4L * (count + 1L));
    }

    private static long bits(int count) {
      return (count + 7L) >> 3;
    }

    private static long fixedBytes(ArrowType type, int count) {
      return switch (type.getTypeID()) {
        case Bool -> bits(count);
        case Int -> ((ArrowType.Int) type).getBitWidth() / 8L * count;
        case FloatingPoint ->
            switch (((ArrowType.FloatingPoint) type).getPrecision()) {
              case HALF -> 2L * count;
              case SINGLE -> 4L * count;
              case DOUBLE -> 8L * count;
            };
        case Date, Interval -> 4L * count;
        case Timestamp, Duration -> 8L * count;
        case Decimal -> 16L * count;
        default -> throw new IllegalStateException("no column of a feed is " + type);
      };
    }
  }
}
