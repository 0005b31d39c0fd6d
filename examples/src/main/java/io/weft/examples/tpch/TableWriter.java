package io.weft.examples.tpch;

import io.trino.tpch.TpchColumn;
import io.trino.tpch.TpchEntity;
import io.trino.tpch.TpchTable;
import io.weft.examples.side.Cleanup;
import io.weft.examples.side.SideLauncher;
import io.weft.examples.side.SideOptions;
import io.weft.examples.side.SideProcess;
import io.weft.examples.side.SideTask;
import io.weft.examples.side.WorkFolder;
import io.weft.examples.terminal.Progress;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Iterator;
import java.util.List;
import java.util.Optional;
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
 * Writes the tables in a separate process, which then ends. The generator keeps 300 MB of text
 * until its process ends, and the compared sides must not hold that memory.
 */
public final class TableWriter {
  private final SideLauncher launcher;
  private final Cleanup cleanup;
  private final Progress progress;

  /** Adds the process that it starts to a cleanup, in case it is interrupted. */
  public TableWriter(SideLauncher launcher, Cleanup cleanup, Progress progress) {
    this.launcher = launcher;
    this.cleanup = cleanup;
    this.progress = progress;
  }

  /**
   * Returns a folder with all tables of a scale, which it writes if necessary.
   *
   * @param data the folder to use; empty for a temporary one
   * @param work the parent of the temporary folder
   * @throws IOException if the folder has other content
   */
  public Path provide(Optional<Path> data, WorkFolder work, double scale)
      throws IOException, InterruptedException {
    Path folder = data.isPresent() ? data.get().toAbsolutePath() : work.folder("tpch");
    if (TpchTables.complete(folder, scale)) {
      progress.step("using the tables in " + folder);
    } else {
      write(folder, scale);
    }
    return folder;
  }

  /** Writes all tables of a scale to a folder. */
  public void write(Path folder, double scale) throws IOException, InterruptedException {
    Files.createDirectories(folder);
    progress.step("writing TPC-H tables of scale " + scale + " to " + folder);
    long rows = 0;
    try (SideProcess writer = cleanup.add(launcher.start(SideOptions.writer()))) {
      for (String table : TpchTables.names()) {
        progress.detail("writing table " + table);
        rows += writer.call(new WriteTable(table, scale, folder.resolve(table).toString()));
      }
    }
    TpchTables.markComplete(folder, scale);
    progress.step(String.format("%,d rows of TPC-H tables written", rows));
  }

  /**
   * Generates one table and writes it as Parquet. Money, quantities and rates are DECIMAL(15,2), as
   * in the specification. So every sum is exact, and results can be compared digit by digit.
   *
   * @param table its name
   * @param scale the scale factor: 1 is about 1 GB as text
   * @param folder the folder to write to; must not exist
   */
  public record WriteTable(String table, double scale, String folder) implements SideTask<Long> {
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
}
