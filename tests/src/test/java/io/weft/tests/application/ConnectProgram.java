package io.weft.tests.application;

import java.io.IOException;
import java.util.List;
import org.apache.spark.sql.DataFrameWriter;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.SparkSession;

/**
 * A user's program on a Spark Connect server: saves a feed and lists it, by data frames and by SQL.
 * Its class path has neither Weft nor Spark's engine.
 */
public final class ConnectProgram {
  private ConnectProgram() {}

  /**
   * Runs the program.
   *
   * @param arguments the server's URL and a folder for the feed
   */
  public static void main(String[] arguments) throws IOException {
    String folder = arguments[1];
    try (SparkSession session = SparkSession.builder().remote(arguments[0]).getOrCreate()) {
      Stage.send("session " + session.getClass().getName());
      writer(session).option("tensor.x", "int64[2]").save(folder);
      List<Row> shards = session.read().format("weft").load(folder).orderBy("rank").collectAsList();
      for (Row shard : shards) {
        Stage.send("shard " + shard.getAs("rows") + " " + shard.getAs("path"));
      }
      tables(session);
      sendError("exists", () -> writer(session).save(folder));
      writer(session).mode(SaveMode.Overwrite).option("lease", "1h").save(folder);
      sendError("ranks", () -> writer(session).option("ranks", 0).save(folder + "-none"));
      sendError(
          "rows", () -> writer(session).option("tensor.x", "int64[3]").save(folder + "-none"));
      sendError("nothing", () -> session.read().format("weft").load(folder + "-none").count());
      Stage.pause("saved");
    }
  }

  private static DataFrameWriter<Row> writer(SparkSession session) {
    return session
        .range(0, 1000, 1, 4)
        .selectExpr("id", "array(id, id + 1) AS x")
        .write()
        .format("weft")
        .option("ranks", 2)
        .option("batchRows", 50)
        .option("shuffleSeed", 17);
  }

  private static void tables(SparkSession session) {
    session.sql(
        "CREATE TABLE exported USING weft OPTIONS (ranks 2, batchRows 50)"
            + " AS SELECT id FROM range(1000)");
    Stage.send(
        "table " + session.sql("SELECT sum(rows) AS all FROM exported").first().getAs("all"));
    session.sql("DROP TABLE exported");
  }

  private static void sendError(String name, Runnable action) {
    try {
      action.run();
      Stage.send("error " + name + " none");
    } catch (Exception e) {
      // Scala throws checked exceptions, such as AnalysisException, without declaring them.
      String message = String.valueOf(e.getMessage()).lines().findFirst().orElse("");
      Stage.send("error " + name + " " + e.getClass().getName() + " " + message);
    }
  }
}
