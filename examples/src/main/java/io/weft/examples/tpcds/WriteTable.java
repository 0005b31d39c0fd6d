package io.weft.examples.tpcds;

import io.trino.tpcds.Results;
import io.trino.tpcds.Session;
import io.trino.tpcds.Table;
import io.trino.tpcds.column.Column;
import io.trino.tpcds.column.ColumnType;
import io.weft.examples.side.SideTask;
import java.math.BigDecimal;
import java.time.LocalDate;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.Locale;
import java.util.stream.IntStream;
import java.util.stream.StreamSupport;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Generates one table and writes it as Parquet. The types are those of Spark's own tests of TPC-DS,
 * with STRING for CHAR and VARCHAR.
 *
 * @param table its name
 * @param scale the scale factor: 1 is about 1 GB as text
 * @param folder the folder to write to; must not exist
 */
record WriteTable(String table, double scale, String folder) implements SideTask<Long> {
  @Override
  public Long run(SparkSession session) {
    Table source = Table.getTable(table);
    int parts = TpcdsTables.parts(source, scale);
    List<Integer> numbers = IntStream.rangeClosed(1, parts).boxed().toList();
    double factor = scale;
    JavaRDD<InternalRow> rows =
        JavaSparkContext.fromSparkContext(session.sparkContext())
            .parallelize(numbers, parts)
            .flatMap(part -> rows(source, factor, part, parts));
    ((org.apache.spark.sql.classic.SparkSession) session)
        .internalCreateDataFrame(rows.rdd(), schema(source), false)
        // The generator makes tables of less than a million rows in one part.
        .repartition(parts)
        .write()
        .parquet(folder);
    return session.read().parquet(folder).count();
  }

  static StructType schema(Table table) {
    StructType schema = new StructType();
    for (Column column : table.getColumns()) {
      schema = schema.add(name(column), type(column.getType()));
    }
    return schema;
  }

  private static String name(Column column) {
    String name = column.getName().toLowerCase(Locale.ROOT);
    // Renamed in version 2 of the specification; the queries are of version 1.4.
    return name.equals("c_last_review_date_sk") ? "c_last_review_date" : name;
  }

  private static DataType type(ColumnType type) {
    return switch (type.getBase()) {
      case INTEGER, IDENTIFIER -> DataTypes.IntegerType;
      case DATE -> DataTypes.DateType;
      case DECIMAL ->
          DataTypes.createDecimalType(
              type.getPrecision().orElseThrow(), type.getScale().orElseThrow());
      case VARCHAR, CHAR, TIME -> DataTypes.StringType;
    };
  }

  static Iterator<InternalRow> rows(Table table, double scale, int part, int parts) {
    Session session =
        Session.getDefaultSession()
            .withScale(scale)
            .withParallelism(parts)
            .withChunkNumber(part)
            .withTable(table);
    ColumnType[] types =
        Arrays.stream(table.getColumns()).map(Column::getType).toArray(ColumnType[]::new);
    // A result is the row of the table, and then rows of the tables that depend on it.
    return StreamSupport.stream(Results.constructResults(table, session).spliterator(), false)
        .map(result -> row(types, result.get(0)))
        .iterator();
  }

  private static InternalRow row(ColumnType[] types, List<String> texts) {
    Object[] values = new Object[types.length];
    for (int i = 0; i < values.length; i++) {
      values[i] = texts.get(i) == null ? null : value(types[i], texts.get(i));
    }
    return new GenericInternalRow(values);
  }

  private static Object value(ColumnType type, String text) {
    return switch (type.getBase()) {
      case INTEGER, IDENTIFIER -> Integer.valueOf(text);
      case DATE -> (int) LocalDate.parse(text).toEpochDay();
      case DECIMAL ->
          Decimal.apply(
              new BigDecimal(text),
              type.getPrecision().orElseThrow(),
              type.getScale().orElseThrow());
      case VARCHAR, CHAR, TIME -> UTF8String.fromString(text);
    };
  }
}
