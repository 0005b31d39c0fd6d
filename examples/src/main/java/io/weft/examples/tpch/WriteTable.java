package io.weft.examples.tpch;

import io.trino.tpch.TpchColumn;
import io.trino.tpch.TpchEntity;
import io.trino.tpch.TpchTable;
import io.weft.examples.side.SideTask;
import java.util.Iterator;
import java.util.List;
import java.util.stream.IntStream;
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
 * Generates one table and writes it as Parquet. Money, quantities and rates are DECIMAL(15,2), as
 * in the specification. So every sum is exact, and results can be compared digit by digit.
 *
 * @param table its name
 * @param scale the scale factor: 1 is about 1 GB as text
 * @param folder the folder to write to; must not exist
 */
record WriteTable(String table, double scale, String folder) implements SideTask<Long> {
  static final DataType MONEY = DataTypes.createDecimalType(15, 2);

  @Override
  public Long run(SparkSession session) {
    TpchTable<?> source = TpchTable.getTable(table);
    int parts = TpchTables.parts(source, scale);
    List<Integer> numbers = IntStream.rangeClosed(1, parts).boxed().toList();
    String name = table;
    double factor = scale;
    JavaRDD<InternalRow> rows =
        JavaSparkContext.fromSparkContext(session.sparkContext())
            .parallelize(numbers, parts)
            .flatMap(part -> rows(TpchTable.getTable(name), factor, part, parts));
    ((org.apache.spark.sql.classic.SparkSession) session)
        .internalCreateDataFrame(rows.rdd(), schema(source), false)
        .write()
        .parquet(folder);
    return session.read().parquet(folder).count();
  }

  static StructType schema(TpchTable<?> table) {
    StructType schema = new StructType();
    for (TpchColumn<?> column : table.getColumns()) {
      schema = schema.add(column.getColumnName(), type(column), false);
    }
    return schema;
  }

  private static DataType type(TpchColumn<?> column) {
    return switch (column.getType().getBase()) {
      case INTEGER -> DataTypes.IntegerType;
      case IDENTIFIER -> DataTypes.LongType;
      case DATE -> DataTypes.DateType;
      case DOUBLE -> MONEY;
      case VARCHAR -> DataTypes.StringType;
    };
  }

  static <E extends TpchEntity> Iterator<InternalRow> rows(
      TpchTable<E> table, double scale, int part, int parts) {
    List<TpchColumn<E>> columns = table.getColumns();
    Iterator<E> entities = table.createGenerator(scale, part, parts).iterator();
    return new Iterator<>() {
      @Override
      public boolean hasNext() {
        return entities.hasNext();
      }

      @Override
      public InternalRow next() {
        return row(columns, entities.next());
      }
    };
  }

  private static <E extends TpchEntity> InternalRow row(List<TpchColumn<E>> columns, E entity) {
    Object[] values = new Object[columns.size()];
    for (int i = 0; i < values.length; i++) {
      values[i] = value(columns.get(i), entity);
    }
    return new GenericInternalRow(values);
  }

  private static <E extends TpchEntity> Object value(TpchColumn<E> column, E entity) {
    return switch (column.getType().getBase()) {
      case INTEGER -> column.getInteger(entity);
      case IDENTIFIER -> column.getIdentifier(entity);
      case DATE -> column.getDate(entity);
      // For a money column, the library returns the cents as the identifier.
      case DOUBLE -> Decimal.createUnsafe(column.getIdentifier(entity), 15, 2);
      case VARCHAR -> UTF8String.fromString(column.getString(entity));
    };
  }
}
