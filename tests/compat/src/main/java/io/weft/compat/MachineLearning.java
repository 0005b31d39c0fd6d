package io.weft.compat;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.apache.spark.graphx.Graph;
import org.apache.spark.graphx.GraphLoader;
import org.apache.spark.graphx.lib.PageRank;
import org.apache.spark.ml.classification.RandomForestClassifier;
import org.apache.spark.ml.feature.VectorAssembler;
import org.apache.spark.ml.feature.Word2Vec;
import org.apache.spark.ml.linalg.Vector;
import org.apache.spark.ml.recommendation.ALS;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.storage.StorageLevel;
import scala.Tuple2;
import scala.reflect.ClassTag;

/**
 * Graphs and models. Sums of floating-point numbers depend on the order in which blocks arrive, so
 * results are rounded.
 */
final class MachineLearning {
  private static final int WORDS = 30;

  private MachineLearning() {}

  static List<Program> all() {
    Program pageRank = Program.of("GraphX, PageRank", Map.of(), MachineLearning::pageRank);
    Program als = Program.of("MLlib, ALS", Map.of(), MachineLearning::als);
    Program forest = Program.of("MLlib, random forest", Map.of(), MachineLearning::randomForest);
    Program words = Program.of("MLlib, Word2Vec", Map.of(), MachineLearning::word2Vec);
    return List.of(
        pageRank.withKryo(),
        pageRank.withStreams(),
        pageRank.withKryoStreams(),
        als.withKryo(),
        als.withStreams(),
        als.withKryoStreams(),
        forest.withKryo(),
        forest.withStreams(),
        words.withKryo(),
        words.withStreams());
  }

  private static List<String> pageRank(SparkSession session, Path folder) throws Exception {
    Path edges = folder.resolve("edges");
    Files.write(
        edges, IntStream.range(0, 5000).mapToObj(i -> (i % 500) + " " + (i * 31 % 499)).toList());
    StorageLevel memory = StorageLevel.MEMORY_ONLY();
    Graph<Object, Object> graph =
        GraphLoader.edgeListFile(
            session.sparkContext(), edges.toString(), false, 4, memory, memory);
    Graph<Object, Object> ranks =
        PageRank.run(graph, 10, 0.15, ClassTag.<Object>apply(int.class), ClassTag.apply(int.class));
    List<String> lines = new ArrayList<>();
    for (Tuple2<Object, Object> vertex : ranks.vertices().toJavaRDD().collect()) {
      lines.add("%s %.6f".formatted(vertex._1(), (Double) vertex._2()));
    }
    Collections.sort(lines);
    return lines;
  }

  private static List<String> als(SparkSession session, Path folder) {
    Dataset<Row> ratings =
        session.sql(
            "SELECT CAST(id % 50 AS INT) AS user, CAST(id * 7 % 37 AS INT) AS item,"
                + " CAST(id * 3 % 5 + 1 AS FLOAT) AS rating FROM RANGE(0, 1500, 1, 4)");
    return Program.sorted(
        new ALS()
            .setSeed(1)
            .setMaxIter(4)
            .fit(ratings)
            .transform(ratings)
            .selectExpr("user", "item", "ROUND(prediction, 2) AS prediction"));
  }

  /** Rows are sorted after the shuffle, because trees take their samples in the rows' order. */
  private static List<String> randomForest(SparkSession session, Path folder) {
    Dataset<Row> data =
        session
            .sql(
                "SELECT id, CAST(id % 3 AS DOUBLE) AS label, CAST(id * 13 % 101 AS DOUBLE) AS x,"
                    + " CAST(id % 3 * 10 + id % 7 AS DOUBLE) AS y FROM RANGE(0, 3000, 1, 4)")
            .repartition(5, org.apache.spark.sql.functions.col("id"))
            .sortWithinPartitions("id");
    Dataset<Row> features =
        new VectorAssembler()
            .setInputCols(new String[] {"x", "y"})
            .setOutputCol("features")
            .transform(data);
    return Program.sorted(
        new RandomForestClassifier()
            .setSeed(1)
            .setNumTrees(8)
            .fit(features)
            .transform(features)
            .groupBy("label", "prediction")
            .count());
  }

  /**
   * Each word has a count of its own, because their order among equal counts is undefined. The
   * texts are in one partition, because the model depends on their order, which is undefined after
   * a shuffle of several.
   */
  private static List<String> word2Vec(SparkSession session, Path folder) {
    List<String> lines = new ArrayList<>();
    for (int word = 0; word < WORDS; word++) {
      for (int i = 0; i <= word; i++) {
        lines.add("word%1$d word%1$d word%1$d".formatted(word));
      }
    }
    Dataset<Row> texts =
        session
            .createDataset(lines, Encoders.STRING())
            .coalesce(1)
            .selectExpr("SPLIT(value, ' ') AS text");
    Dataset<Row> vectors =
        new Word2Vec()
            .setInputCol("text")
            .setOutputCol("vector")
            .setVectorSize(4)
            .setMinCount(0)
            .setSeed(1)
            .fit(texts)
            .getVectors();
    List<String> rounded = new ArrayList<>();
    for (Row row : vectors.collectAsList()) {
      StringBuilder line = new StringBuilder(row.getString(0));
      for (double value : row.<Vector>getAs("vector").toArray()) {
        line.append(" %.4f".formatted(value));
      }
      rounded.add(line.toString());
    }
    Collections.sort(rounded);
    return rounded;
  }
}
