package io.weft.examples.jobs;

import java.io.Serializable;
import java.util.List;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;

/** Where the rows of a job come from. */
public sealed interface Source extends Serializable {
  /** The rows, not yet read. */
  Dataset<Row> rows(SparkSession session);

  /**
   * A folder of Parquet.
   *
   * @param folder that holds the files
   */
  record Parquet(String folder) implements Source {
    @Override
    public Dataset<Row> rows(SparkSession session) {
      return session.read().parquet(folder);
    }
  }

  /**
   * Rows computed from a counter named id.
   *
   * @param count of rows
   * @param partitions that is, map tasks
   * @param expressions of the columns
   */
  record Computed(long count, int partitions, List<String> expressions) implements Source {
    @Override
    public Dataset<Row> rows(SparkSession session) {
      return session.range(0, count, 1, partitions).selectExpr(expressions.toArray(String[]::new));
    }
  }
}
