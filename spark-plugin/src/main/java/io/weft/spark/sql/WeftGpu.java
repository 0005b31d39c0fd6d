package io.weft.spark.sql;

import io.weft.spark.config.Activation;
import io.weft.spark.gpu.DeviceFunction;
import io.weft.spark.gpu.TableTypes;
import io.weft.spark.shuffle.WeftShuffleManager;
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
 * Queries whose batches lie on the GPUs of the executors. What is asked for is planned with the
 * query and runs with it; see docs/gpu.md for what stays on the device. Columns that say by their
 * metadata that they are tensors of one shape, as for feeds, are tensors there.
 */
public final class WeftGpu {
  private WeftGpu() {}

  /**
   * Rows that lie on GPUs: each executor uploads those of its tasks to its own. An exchange right
   * above takes them from there to the GPUs of its readers. On an executor without a GPU, and where
   * a column has no place in a table, rows stay on the host; the log and the Weft tab say why.
   * Whatever asks for the rows on the host gets them, copied back.
   *
   * @return the same rows
   */
  public static Dataset<Row> onDevice(Dataset<Row> rows) {
    var data = (org.apache.spark.sql.classic.Dataset<Row>) rows;
    return planned(data, OnDevice.of(data.logicalPlan()));
  }

  /**
   * What a function makes of the batches of some rows, each on the GPU of the executor that has it.
   * Batches that are not there yet are uploaded. How rows are cut into batches is not defined; all
   * of a batch are of one partition.
   *
   * @param schema of the tables that the function makes
   * @throws IllegalArgumentException if a column of the rows, or of the schema, has no place in a
   *     table
   * @throws IllegalStateException if Weft's plugin is off. A task on an executor without a GPU
   *     fails with the reason
   */
  public static Dataset<Row> mapBatches(
      Dataset<Row> rows, StructType schema, DeviceFunction function) {
    SparkEnv environment = SparkEnv.get();
    if (environment == null || !(environment.shuffleManager() instanceof WeftShuffleManager)) {
      throw new IllegalStateException(
          "Batches on GPUs need Weft's plugin: set spark.plugins to " + Activation.PLUGIN);
    }
    require(rows.schema(), "the rows");
    require(schema, "the function's result");
    Objects.requireNonNull(function, "there is no function for the batches");
    var data = (org.apache.spark.sql.classic.Dataset<Row>) rows;
    MappedTables tables = new MappedTables(function, rows.schema(), schema);
    return planned(data, new MapOnDevice(attributes(schema), tables, data.logicalPlan()));
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
