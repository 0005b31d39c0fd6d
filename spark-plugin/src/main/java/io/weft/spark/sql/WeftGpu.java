package io.weft.spark.sql;

import io.weft.spark.config.Activation;
import io.weft.spark.gpu.DeviceFunction;
import io.weft.spark.gpu.TableTypes;
import io.weft.spark.shuffle.WeftShuffleManager;
import io.weft.spark.sql.MapOnDevice.MappedTables;
import java.util.Objects;
import org.apache.spark.SparkEnv;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.types.DataTypeUtils$;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Seq;

/**
 * Queries with batches on the GPUs of the executors. Its operations are planned and run with the
 * query; docs/gpu.md lists which data stays on the GPU. Columns whose metadata declares tensors of
 * one shape, as for feeds, are tensors there.
 */
public final class WeftGpu {
  private WeftGpu() {}

  /**
   * Puts rows on GPUs: each executor uploads the rows of its tasks to its own GPU. An exchange
   * directly above sends them from there to the GPUs of its readers. Rows stay on the host if an
   * executor has no GPU, or if a column has no place in a table; the log and the Weft tab show the
   * reason. Operators that need the rows on the host get copies.
   *
   * @return the same rows
   */
  public static Dataset<Row> onDevice(Dataset<Row> rows) {
    var data = (org.apache.spark.sql.classic.Dataset<Row>) rows;
    return planned(data, OnDevice.of(data.logicalPlan()));
  }

  /**
   * Maps batches of rows with a function, each on the GPU of its executor. Batches on the host are
   * uploaded. The split of rows into batches is undefined; the rows of a batch are of one
   * partition.
   *
   * @param schema schema of the function's tables
   * @throws IllegalArgumentException if a column of the rows or of the schema has no place in a
   *     table
   * @throws IllegalStateException if Weft's plugin is off. A task on an executor without a GPU
   *     fails with the reason
   */
  public static Dataset<Row> mapBatches(
      Dataset<Row> rows, StructType schema, DeviceFunction function) {
    var data = (org.apache.spark.sql.classic.Dataset<Row>) rows;
    return planned(data, mapped(data.logicalPlan(), schema, function));
  }

  /**
   * Gives a function a name in SQL, for all sessions of the application, in place of an earlier one
   * of that name. The plan of a query keeps the function that it has found:
   *
   * <pre>{@code
   * SELECT * FROM weft_map_batches('far', TABLE(trips))
   * SELECT * FROM weft_on_device(TABLE(SELECT * FROM trips WHERE fare > 0))
   * }</pre>
   *
   * @param name in any case
   * @param schema schema of the function's tables
   * @throws IllegalArgumentException if a column of the schema has no place in a table
   */
  public static void register(String name, StructType schema, DeviceFunction function) {
    require(schema, "the function's result");
    Objects.requireNonNull(function, "there is no function for the batches");
    GpuTableFunctions.register(name, schema, function);
  }

  /** The plan of {@link #mapBatches}, with its errors. */
  static LogicalPlan mapped(LogicalPlan rows, StructType schema, DeviceFunction function) {
    SparkEnv environment = SparkEnv.get();
    if (environment == null || !(environment.shuffleManager() instanceof WeftShuffleManager)) {
      throw new IllegalStateException(
          "Batches on GPUs need Weft's plugin: set spark.plugins to " + Activation.PLUGIN);
    }
    require(rows.schema(), "the rows");
    require(schema, "the function's result");
    Objects.requireNonNull(function, "there is no function for the batches");
    MappedTables tables = new MappedTables(function, rows.schema(), schema);
    return new MapOnDevice(attributes(schema), tables, rows);
  }

  private static void require(StructType schema, String what) {
    TableTypes.obstacle(schema)
        .ifPresent(
            why -> {
              throw new IllegalArgumentException(what + " cannot be a table of a GPU: " + why);
            });
  }

  @SuppressWarnings("unchecked")
  private static Seq<Attribute> attributes(StructType schema) {
    return (Seq<Attribute>) (Seq<?>) DataTypeUtils$.MODULE$.toAttributes(schema);
  }

  private static Dataset<Row> planned(
      org.apache.spark.sql.classic.Dataset<Row> of, LogicalPlan plan) {
    return org.apache.spark.sql.classic.Dataset$.MODULE$.ofRows(of.sparkSession(), plan);
  }
}
