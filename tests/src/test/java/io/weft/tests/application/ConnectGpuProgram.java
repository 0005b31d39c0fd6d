package io.weft.tests.application;

import java.io.IOException;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;

/**
 * A user's program on a Spark Connect server whose executors have GPUs: it calls a function by its
 * name in SQL. Its class path has neither Weft nor Spark's engine.
 */
public final class ConnectGpuProgram {
  /** With the function's name as an argument, as the Python package does. */
  private static final String COPIED =
      "SELECT id, s FROM weft_map_batches(:name, TABLE(SELECT * FROM"
          + " weft_on_device(TABLE(trips)) DISTRIBUTE BY id % 5)) ORDER BY id";

  private static final String NAMED = COPIED.replace(":name", "'copied'");

  private ConnectGpuProgram() {}

  /**
   * Runs the program.
   *
   * @param arguments the server's URL
   */
  public static void main(String[] arguments) throws IOException {
    try (SparkSession session = SparkSession.builder().remote(arguments[0]).getOrCreate()) {
      session
          .range(0, 500, 1, 4)
          .selectExpr("id", "concat('trip ', id) AS s")
          .createOrReplaceTempView("trips");
      List<Row> copied = session.sql(COPIED, Map.of("name", "copied")).collectAsList();
      List<Row> expected = session.sql("SELECT id, s FROM trips ORDER BY id").collectAsList();
      Stage.send("rows " + copied.size() + " " + copied.equals(expected));
      for (Row line : session.sql("EXPLAIN " + NAMED).collectAsList()) {
        line.getString(0).lines().forEach(text -> Stage.send("plan " + text));
      }
      try {
        session.sql(COPIED, Map.of("name", "unknown")).collectAsList();
      } catch (Exception e) {
        Stage.send("error " + e.getMessage().lines().findFirst().orElse(""));
      }
      Stage.pause("done");
    }
  }
}
