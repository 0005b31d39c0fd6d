package io.weft.compat;

import static org.apache.spark.sql.functions.col;
import static org.apache.spark.sql.functions.expr;
import static org.apache.spark.sql.functions.sum;
import static org.apache.spark.sql.functions.window;

import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.streaming.DataStreamWriter;
import org.apache.spark.sql.streaming.Trigger;

/** Structured Streaming over files: state that outlives a query, and a join of two streams. */
final class StreamingPrograms {
  private static final int ROUNDS = 2;
  private static final long ROUND_ROWS = 2000;

  private StreamingPrograms() {}

  static List<Program> all() {
    return List.of(
        Program.of(
            "Structured Streaming, aggregation with state", Map.of(), StreamingPrograms::state),
        Program.of("Structured Streaming, join of streams", Map.of(), StreamingPrograms::join));
  }

  private static List<String> state(SparkSession session, Path folder) throws Exception {
    for (int round = 0; round < ROUNDS; round++) {
      input(session, folder.resolve("in"), round);
      Dataset<Row> sums =
          stream(session, folder.resolve("in"))
              .groupBy(col("k"), window(col("t"), "5 minutes"))
              .agg(sum("v").as("v"));
      run(
          sums.writeStream().outputMode("complete").format("memory").queryName("sums"),
          folder.resolve("checkpoint"));
    }
    return Program.sorted(session.table("sums"));
  }

  private static List<String> join(SparkSession session, Path folder) throws Exception {
    for (int round = 0; round < ROUNDS; round++) {
      input(session, folder.resolve("left"), round);
      input(session, folder.resolve("right"), round);
      Dataset<Row> left = stream(session, folder.resolve("left"));
      Dataset<Row> right =
          stream(session, folder.resolve("right")).selectExpr("k AS rk", "v AS rv", "t AS rt");
      Dataset<Row> joined =
          left.join(
              right,
              expr("k = rk AND v % 50 = rv % 50 AND rt BETWEEN t AND t + INTERVAL 10 MINUTES"));
      run(
          joined.writeStream().format("parquet").option("path", folder.resolve("out").toString()),
          folder.resolve("checkpoint"));
    }
    return Program.sorted(session.read().parquet(folder.resolve("out").toString()));
  }

  private static void input(SparkSession session, Path folder, int round) {
    session
        .range(round * ROUND_ROWS, (round + 1) * ROUND_ROWS, 1, 4)
        .selectExpr("CAST(id % 20 AS INT) AS k", "id AS v", "TIMESTAMP_SECONDS(id) AS t")
        .write()
        .mode("append")
        .json(folder.toString());
  }

  private static Dataset<Row> stream(SparkSession session, Path folder) {
    return session
        .readStream()
        .schema("k INT, v BIGINT, t TIMESTAMP")
        .option("maxFilesPerTrigger", 3)
        .json(folder.toString())
        .withWatermark("t", "1 hour");
  }

  private static void run(DataStreamWriter<Row> writer, Path checkpoint) throws Exception {
    writer
        .option("checkpointLocation", checkpoint.toString())
        .trigger(Trigger.AvailableNow())
        .start()
        .awaitTermination();
  }
}
