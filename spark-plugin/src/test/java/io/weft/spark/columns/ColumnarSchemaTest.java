package io.weft.spark.columns;

import static java.util.stream.Collectors.joining;
import static org.assertj.core.api.Assertions.assertThat;

import io.weft.spark.columns.ColumnLayout.StorageForm;
import java.util.List;
import java.util.OptionalDouble;
import java.util.stream.IntStream;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.ObjectType;
import org.apache.spark.sql.types.StructType;
import org.junit.jupiter.api.Test;

class ColumnarSchemaTest {
  @Test
  void supportsEveryTypeOfThisSpark() {
    for (DataType type : TypeSet.leaves()) {
      StructType schema =
          new StructType()
              .add("plain", type)
              .add("list", DataTypes.createArrayType(type))
              .add("map", DataTypes.createMapType(DataTypes.IntegerType, type))
              .add("struct", new StructType().add("field", type));
      assertThat(ColumnarSchema.unsupportedReason(schema)).as(type.sql()).isEmpty();
    }
  }

  @Test
  void namesTheUnsupportedColumn() {
    DataType objects = new ObjectType(String.class);
    StructType schema =
        new StructType()
            .add("good", DataTypes.IntegerType)
            .add("bad", new StructType().add("list", DataTypes.createArrayType(objects)));
    assertThat(ColumnarSchema.unsupportedReason(schema))
        .hasValueSatisfying(
            reason -> assertThat(reason).contains("bad.list.element").contains(objects.sql()));
  }

  @Test
  void laysOutLikeArrow() {
    assertThat(form("decimal(18,2)")).isEqualTo(StorageForm.DECIMAL64);
    assertThat(form("decimal(19,2)")).isEqualTo(StorageForm.DECIMAL128);
    assertThat(form("timestamp_ntz")).isEqualTo(StorageForm.LONG);
    assertThat(form("interval year to month")).isEqualTo(StorageForm.INT);
    assertThat(form("string collate UNICODE")).isEqualTo(StorageForm.STRING);
    assertThat(ColumnLayout.of("", DataType.fromDDL("map<int, array<string>>")).nodes())
        .isEqualTo(4);
    assertThat(ColumnLayout.of("", DataTypes.CalendarIntervalType).nodes()).isEqualTo(4);
    assertThat(ColumnLayout.of("", new VectorLikeUdt()).type()).isInstanceOf(StructType.class);
  }

  @Test
  void comparesRowsWithColumnsOfFixedSize() {
    assertThat(rowsPerColumns("a bigint, b double, c timestamp")).hasValue(40.0 / 24);
    assertThat(rowsPerColumns("a tinyint, b int, c date")).hasValue(40.0 / 9);
    String longs = IntStream.range(0, 65).mapToObj(i -> "c" + i + " bigint").collect(joining(","));
    assertThat(rowsPerColumns(longs)).hasValue((8 + 16 + 65 * 8.0) / (65 * 8));
    for (String other :
        List.of("b string", "b boolean", "b array<int>", "b void", "b decimal(9, 2)")) {
      assertThat(rowsPerColumns("a bigint, " + other)).as(other).isEmpty();
    }
    assertThat(ColumnarSchema.rowsPerColumns(new StructType())).isEmpty();
  }

  private static OptionalDouble rowsPerColumns(String ddl) {
    return ColumnarSchema.rowsPerColumns(StructType.fromDDL(ddl));
  }

  private static StorageForm form(String ddl) {
    return ColumnLayout.of("", DataType.fromDDL(ddl)).form();
  }
}
