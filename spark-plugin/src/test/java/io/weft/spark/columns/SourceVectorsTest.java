package io.weft.spark.columns;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.spark.columns.BytesSource.FixedSource;
import io.weft.spark.columns.ColumnLayout.StorageForm;
import io.weft.spark.columns.SourceVectors.ParquetValues;
import io.weft.spark.compat.OnHeapArrays;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.stream.Stream;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.execution.vectorized.ConstantColumnVector;
import org.apache.spark.sql.execution.vectorized.OffHeapColumnVector;
import org.apache.spark.sql.execution.vectorized.OnHeapColumnVector;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.CalendarInterval;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Every kind of vector that Spark produces below an exchange. */
class SourceVectorsTest {
  static Stream<DataType> dictionaryTypes() {
    return TypeSet.leaves().stream()
        .filter(type -> SourceVectors.hasDictionary(ColumnLayout.of("", type)));
  }

  static Stream<DataType> constantTypes() {
    return TypeSet.leaves().stream()
        .filter(type -> ColumnLayout.of("", type).form() != StorageForm.OPAQUE)
        .filter(type -> ColumnLayout.of("", type).form() != StorageForm.STRUCT);
  }

  @ParameterizedTest
  @MethodSource("dictionaryTypes")
  void readsDictionaries(DataType type) throws Exception {
    StructType schema = RandomRows.schema(List.of(type));
    RandomRows random = new RandomRows(1, 0);
    List<Object> values = new ArrayList<>();
    random.rows(schema, 20).forEach(row -> values.add(row.get(0, type)));
    List<InternalRow> rows = new ArrayList<>();
    for (int i = 0; i < 500; i++) {
      rows.add(new GenericInternalRow(new Object[] {i % 5 == 0 ? null : values.get(i % 20)}));
    }
    for (boolean onHeap : new boolean[] {true, false}) {
      try (RoundTrip trip = new RoundTrip(schema, 3);
          ColumnarBatch batch = SourceVectors.dictionary(schema, rows, onHeap, values)) {
        trip.send(batch, rows).check();
      }
    }
  }

  /** The second dictionary has other values for the same ids. */
  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void decodesEachValueOfAParquetDictionaryOnce(boolean onHeap) throws Exception {
    for (DataType type : List.of(DataTypes.StringType, DataTypes.BinaryType)) {
      StructType schema = RandomRows.schema(List.of(type));
      try (RoundTrip trip = new RoundTrip(schema, 3)) {
        for (int dictionary = 0; dictionary < 2; dictionary++) {
          List<Object> values = new ArrayList<>();
          new RandomRows(dictionary, 0)
              .rows(schema, 20)
              .forEach(row -> values.add(row.get(0, type)));
          ParquetValues counted = new ParquetValues(values);
          for (int batch = 0; batch < 3; batch++) {
            List<InternalRow> rows = new ArrayList<>();
            for (int i = 0; i < 200; i++) {
              Object value = i % 5 == 0 ? null : values.get((i + batch) % 20);
              rows.add(new GenericInternalRow(new Object[] {value}));
            }
            try (ColumnarBatch one = SourceVectors.parquet(schema, rows, onHeap, counted)) {
              trip.send(one, rows);
            }
          }
          assertThat(counted.decoded()).isBetween(1, values.size());
        }
        trip.check();
      }
    }
  }

  @ParameterizedTest
  @MethodSource("constantTypes")
  void readsConstants(DataType type) throws Exception {
    StructType schema = RandomRows.schema(List.of(type));
    Object value = new RandomRows(2, 0).value(ColumnLayout.of("", type));
    for (Object constant : new Object[] {value, null}) {
      InternalRow row = new GenericInternalRow(new Object[] {constant});
      List<InternalRow> rows = Collections.nCopies(300, row);
      try (RoundTrip trip = new RoundTrip(schema, 3);
          ColumnarBatch batch = SourceVectors.constant(schema, row, rows.size())) {
        trip.send(batch, rows).check();
      }
    }
  }

  /** Vectors outside the heap begin with the bytes that their memory had before. */
  @Test
  void ignoresTheBytesOfNulls() throws Exception {
    StructType schema = RandomRows.schema(List.of(DataTypes.BooleanType));
    List<InternalRow> rows = new ArrayList<>();
    OffHeapColumnVector vector = new OffHeapColumnVector(300, DataTypes.BooleanType);
    for (int i = 0; i < 300; i++) {
      if (i % 3 == 0) {
        Platform.putByte(null, vector.valuesNativeAddress() + i, (byte) (0xAB + i));
        vector.putNull(i);
      } else {
        vector.putBoolean(i, i % 2 == 0);
      }
      rows.add(new GenericInternalRow(new Object[] {i % 3 == 0 ? null : i % 2 == 0}));
    }
    try (RoundTrip trip = new RoundTrip(schema, 3);
        ColumnarBatch batch = new ColumnarBatch(new ColumnVector[] {vector}, 300)) {
      trip.send(batch, rows).check();
    }
  }

  @Test
  void readsConstantStructsArraysAndMaps() throws Exception {
    StructType schema =
        RandomRows.schema(
            List.of(
                DataType.fromDDL("struct<a: int, b: string>"),
                DataType.fromDDL("array<string>"),
                DataType.fromDDL("map<int, string>")));
    InternalRow row = new RandomRows(5, 0).rows(schema, 1).get(0);
    try (RoundTrip trip = new RoundTrip(schema, 2);
        ColumnarBatch one = BatchKind.ON_HEAP.batch(schema, List.of(row))) {
      ConstantColumnVector struct = new ConstantColumnVector(100, schema.fields()[0].dataType());
      ConstantColumnVector number = new ConstantColumnVector(100, DataTypes.IntegerType);
      number.setInt(one.column(0).getChild(0).getInt(0));
      ConstantColumnVector text = new ConstantColumnVector(100, DataTypes.StringType);
      text.setUtf8String(one.column(0).getChild(1).getUTF8String(0));
      struct.setChild(0, number);
      struct.setChild(1, text);
      ConstantColumnVector list = new ConstantColumnVector(100, schema.fields()[1].dataType());
      list.setArray(one.column(1).getArray(0));
      ConstantColumnVector map = new ConstantColumnVector(100, schema.fields()[2].dataType());
      map.setMap(one.column(2).getMap(0));
      ColumnarBatch batch = new ColumnarBatch(new ColumnVector[] {struct, list, map}, 100);
      trip.send(batch, Collections.nCopies(100, row)).check();
    }
  }

  @Test
  void readsConstantStructThatIsNull() throws Exception {
    StructType schema = RandomRows.schema(List.of(DataType.fromDDL("struct<a: int, b: string>")));
    ConstantColumnVector struct = new ConstantColumnVector(10, schema.fields()[0].dataType());
    struct.setNull();
    try (RoundTrip trip = new RoundTrip(schema, 2)) {
      InternalRow row = new GenericInternalRow(new Object[] {null});
      trip.send(new ColumnarBatch(new ColumnVector[] {struct}, 10), Collections.nCopies(10, row))
          .check();
    }
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void readsArrow(boolean large) throws Exception {
    List<DataType> types = new ArrayList<>();
    for (String ddl :
        new String[] {
          "boolean",
          "tinyint",
          "smallint",
          "int",
          "bigint",
          "float",
          "double",
          "date",
          "timestamp",
          "timestamp_ntz",
          "interval year to month",
          "interval day to second",
          "decimal(9,2)",
          "decimal(18,3)",
          "decimal(38,10)",
          "string",
          "binary",
          "void",
          "array<int>",
          "array<string>",
          "map<string, decimal(7,1)>",
          "variant",
          "struct<a: int, b: array<struct<c: string, d: binary>>>",
          "array<array<boolean>>"
        }) {
      types.add(TypeSet.parse(ddl));
    }
    StructType schema = RandomRows.schema(types);
    List<InternalRow> rows = new RandomRows(3, 0.2).rows(schema, 700);
    try (RoundTrip trip = new RoundTrip(schema, 4);
        ColumnarBatch batch = SourceVectors.arrow(schema, rows, large)) {
      trip.send(batch, rows).check();
    }
  }

  @Test
  void readsCalendarIntervalsFromArrow() throws Exception {
    StructType schema = RandomRows.schema(List.of(DataTypes.CalendarIntervalType));
    List<InternalRow> rows = new ArrayList<>();
    for (int i = 0; i < 50; i++) {
      Object value = i % 3 == 0 ? null : new CalendarInterval(i, -i, 1000L * i);
      rows.add(new GenericInternalRow(new Object[] {value}));
    }
    try (RoundTrip trip = new RoundTrip(schema, 2);
        ColumnarBatch batch = SourceVectors.arrow(schema, rows, false)) {
      trip.send(batch, rows).check();
    }
  }

  /** A scan leaves old offsets under nulls when it uses a vector again. */
  @Test
  void ignoresOffsetsOfNulls() throws Exception {
    StructType schema =
        RandomRows.schema(
            List.of(DataType.fromDDL("struct<s: string, l: array<string>>"), DataTypes.StringType));
    OnHeapColumnVector[] columns = OnHeapColumnVector.allocateColumns(10, schema);
    OnHeapColumnVector text = (OnHeapColumnVector) columns[0].getChild(0);
    OnHeapColumnVector list = (OnHeapColumnVector) columns[0].getChild(1);
    List<InternalRow> rows = new ArrayList<>();
    for (int row = 0; row < 10; row++) {
      text.putArray(row, 1 << 28, 1 << 28);
      list.putArray(row, 1 << 28, 1 << 28);
      columns[0].putNull(row);
      columns[1].putArray(row, 1 << 28, 1 << 28);
      columns[1].putNull(row);
      rows.add(new GenericInternalRow(new Object[] {null, null}));
    }
    try (RoundTrip trip = new RoundTrip(schema, 2);
        ColumnarBatch batch = new ColumnarBatch(columns, 10)) {
      trip.send(batch, rows).check();
    }
  }

  /** Scans reuse the same vectors. */
  @Test
  void keepsNothingOfThePreviousBatch() throws Exception {
    StructType schema = RandomRows.schema(List.of(DataTypes.LongType, DataTypes.StringType));
    OnHeapColumnVector[] columns = OnHeapColumnVector.allocateColumns(10, schema);
    Random random = new Random(1);
    try (RoundTrip trip = new RoundTrip(schema, 3)) {
      for (int i = 0; i < 20; i++) {
        List<InternalRow> rows = new RandomRows(i, i % 2).rows(schema, random.nextInt(50));
        for (OnHeapColumnVector column : columns) {
          column.reset();
        }
        trip.send(BatchKind.fill(schema, rows, columns), rows);
      }
      trip.check();
    }
  }

  @Test
  void findsTheArraysBehindSparksVectors() {
    for (String ddl :
        new String[] {"tinyint", "smallint", "int", "bigint", "float", "double", "decimal(18,2)"}) {
      ColumnLayout layout = ColumnLayout.of("", DataType.fromDDL(ddl));
      try (OnHeapColumnVector vector = new OnHeapColumnVector(4, layout.type())) {
        assertThat(FixedSource.array(vector, layout.form())).as(ddl).isNotNull();
        assertThat(OnHeapArrays.nulls(vector)).hasSize(4);
      }
    }
    try (OnHeapColumnVector vector = new OnHeapColumnVector(4, DataTypes.StringType)) {
      assertThat(OnHeapArrays.starts(vector)).hasSize(4);
      assertThat(OnHeapArrays.lengths(vector)).hasSize(4);
    }
  }
}
