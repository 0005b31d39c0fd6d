package io.weft.spark.columns;

import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.List;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.parquet.column.Encoding;
import org.apache.parquet.io.api.Binary;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.arrow.ArrowWriter;
import org.apache.spark.sql.execution.datasources.parquet.ParquetDictionary;
import org.apache.spark.sql.execution.vectorized.ColumnVectorUtils;
import org.apache.spark.sql.execution.vectorized.ConstantColumnVector;
import org.apache.spark.sql.execution.vectorized.Dictionary;
import org.apache.spark.sql.execution.vectorized.OffHeapColumnVector;
import org.apache.spark.sql.execution.vectorized.OnHeapColumnVector;
import org.apache.spark.sql.execution.vectorized.WritableColumnVector;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ArrowColumnVector;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** Vectors like those of scans and Python functions: dictionaries, constants, Arrow. */
final class SourceVectors {
  private SourceVectors() {}

  /** A batch of one column with a dictionary; ids of nulls are invalid. */
  static ColumnarBatch dictionary(
      StructType schema, List<InternalRow> rows, boolean onHeap, List<Object> values) {
    ColumnLayout layout = ColumnarSchema.of(schema).columns().get(0);
    int capacity = Math.max(1, rows.size());
    WritableColumnVector vector =
        onHeap
            ? new OnHeapColumnVector(capacity, layout.type())
            : new OffHeapColumnVector(capacity, layout.type());
    WritableColumnVector ids = vector.reserveDictionaryIds(capacity);
    for (int row = 0; row < rows.size(); row++) {
      if (rows.get(row).isNullAt(0)) {
        vector.putNull(row);
        ids.putInt(row, Integer.MAX_VALUE);
      } else {
        ids.putInt(row, values.indexOf(rows.get(row).get(0, layout.type())));
      }
    }
    vector.setDictionary(new ListDictionary(layout, values));
    return new ColumnarBatch(new ColumnVector[] {vector}, rows.size());
  }

  /**
   * As {@link #dictionary}, but each vector has a new object around the same Parquet dictionary.
   */
  static ColumnarBatch parquet(
      StructType schema, List<InternalRow> rows, boolean onHeap, ParquetValues values) {
    ColumnarBatch batch = dictionary(schema, rows, onHeap, values.all());
    ((WritableColumnVector) batch.column(0)).setDictionary(new ParquetDictionary(values, false));
    return batch;
  }

  /** A Parquet dictionary of strings or bytes, which counts how often it is asked. */
  static final class ParquetValues extends org.apache.parquet.column.Dictionary {
    private final List<Object> values;
    private int decoded;

    ParquetValues(List<Object> values) {
      super(Encoding.PLAIN);
      this.values = values;
    }

    List<Object> all() {
      return values;
    }

    int decoded() {
      return decoded;
    }

    @Override
    public int getMaxId() {
      return values.size() - 1;
    }

    @Override
    public Binary decodeToBinary(int id) {
      decoded++;
      Object value = values.get(id);
      return Binary.fromConstantByteArray(
          value instanceof byte[] bytes ? bytes : value.toString().getBytes(UTF_8));
    }
  }

  /** A batch of one column with the same value in every row. */
  static ColumnarBatch constant(StructType schema, InternalRow row, int count) {
    ConstantColumnVector vector =
        new ConstantColumnVector(count, ColumnarSchema.of(schema).columns().get(0).type());
    ColumnVectorUtils.populate(vector, row, 0);
    return new ColumnarBatch(new ColumnVector[] {vector}, count);
  }

  /** A batch over Arrow's vectors. */
  static ColumnarBatch arrow(StructType schema, List<InternalRow> rows, boolean large) {
    ArrowWriter writer = ArrowWriter.create(schema, "UTC", true, large);
    rows.forEach(writer::write);
    writer.finish();
    VectorSchemaRoot root = writer.root();
    List<ColumnVector> vectors = new ArrayList<>();
    root.getFieldVectors().forEach(vector -> vectors.add(new ArrowColumnVector(vector)));
    return new ColumnarBatch(vectors.toArray(ColumnVector[]::new), rows.size());
  }

  private record ListDictionary(ColumnLayout layout, List<Object> values) implements Dictionary {
    @Override
    public int decodeToInt(int id) {
      Object value = values.get(id);
      return value instanceof Decimal decimal
          ? (int) decimal.toUnscaledLong()
          : ((Number) value).intValue();
    }

    @Override
    public long decodeToLong(int id) {
      Object value = values.get(id);
      return value instanceof Decimal decimal
          ? decimal.toUnscaledLong()
          : ((Number) value).longValue();
    }

    @Override
    public float decodeToFloat(int id) {
      return (Float) values.get(id);
    }

    @Override
    public double decodeToDouble(int id) {
      return (Double) values.get(id);
    }

    /** Large decimals have 16 bytes, more than most need, as in Parquet. */
    @Override
    public byte[] decodeToBinary(int id) {
      Object value = values.get(id);
      if (value instanceof Decimal decimal) {
        BigDecimal exact = decimal.toJavaBigDecimal();
        byte[] shortest = exact.unscaledValue().toByteArray();
        byte[] padded = new byte[16];
        java.util.Arrays.fill(padded, (byte) (exact.signum() < 0 ? -1 : 0));
        System.arraycopy(shortest, 0, padded, 16 - shortest.length, shortest.length);
        return padded;
      }
      return value instanceof byte[] bytes ? bytes : value.toString().getBytes(UTF_8);
    }
  }

  private static final java.nio.charset.Charset UTF_8 = java.nio.charset.StandardCharsets.UTF_8;

  /** Whether Spark's vectors support dictionaries of that type. */
  static boolean hasDictionary(ColumnLayout layout) {
    return switch (layout.form()) {
      case BYTE, SHORT, INT, LONG, FLOAT, DOUBLE, STRING, BINARY -> true;
      case DECIMAL64, DECIMAL128 -> layout.type() instanceof DecimalType;
      default -> false;
    };
  }
}
