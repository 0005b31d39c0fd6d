package io.weft.spark.columns;

import io.weft.spark.columns.ColumnLayout.StorageForm;
import java.util.ArrayList;
import java.util.List;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructType;

/** The types of the Spark under test. */
final class TypeSet {
  private static final List<String> EVERYWHERE =
      List.of(
          "void",
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
          "interval",
          "decimal(1,0)",
          "decimal(9,2)",
          "decimal(10,0)",
          "decimal(18,18)",
          "decimal(19,0)",
          "decimal(38,10)",
          "string",
          "string collate UTF8_LCASE",
          "string collate UNICODE_CI",
          "char(5)",
          "varchar(7)",
          "binary",
          "variant");

  /** Types of some supported versions, with the first version of each. */
  private static final List<String[]> NEWER =
      List.of(
          new String[] {"4.1", "time(6)"},
          new String[] {"4.1", "geometry(4326)"},
          new String[] {"4.1", "geography(4326)"});

  private TypeSet() {}

  static DataType parse(String ddl) {
    return ddl.equals("interval")
        ? DataTypes.CalendarIntervalType
        : ddl.equals("void") ? DataTypes.NullType : DataType.fromDDL(ddl);
  }

  /** Every type that is not nested. */
  static List<DataType> leaves() {
    List<DataType> types = new ArrayList<>(EVERYWHERE.stream().map(TypeSet::parse).toList());
    for (String[] newer : NEWER) {
      if (org.apache.spark.package$.MODULE$.SPARK_VERSION().compareTo(newer[0]) >= 0) {
        types.add(parse(newer[1]));
      }
    }
    types.add(new VectorLikeUdt());
    return types;
  }

  /** Any type, nested to a depth of three. */
  static Arbitrary<DataType> any() {
    return Arbitraries.oneOf(Arbitraries.of(leaves()), nested(3));
  }

  private static Arbitrary<DataType> nested(int depth) {
    Arbitrary<DataType> leaf = Arbitraries.of(nestable());
    if (depth == 0) {
      return leaf;
    }
    Arbitrary<DataType> inner = nested(depth - 1);
    Arbitrary<DataType> list = inner.map(type -> DataTypes.createArrayType(type, true));
    Arbitrary<DataType> map =
        Combinators.combine(inner, inner).as((key, value) -> new MapType(key, value, true));
    Arbitrary<DataType> struct = schema(inner, 3).map(type -> type);
    return Arbitraries.oneOf(leaf, leaf, list, map, struct);
  }

  /** Without types whose arrays are wrong in Spark's interpreted rows, at least in 4.1. */
  private static List<DataType> nestable() {
    return leaves().stream()
        .filter(type -> ColumnLayout.of("", type).form() != StorageForm.OPAQUE)
        .toList();
  }

  /** Schemas of zero to that many columns. */
  static Arbitrary<StructType> schema(Arbitrary<DataType> types, int columns) {
    return types.list().ofMaxSize(columns).map(RandomRows::schema);
  }
}
