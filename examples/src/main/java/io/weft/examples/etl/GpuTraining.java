package io.weft.examples.etl;

import io.weft.collectives.DataType;
import io.weft.examples.side.SideTask;
import io.weft.examples.train.FeedTraining;
import io.weft.examples.train.ModelShape;
import io.weft.examples.train.PriceClasses;
import io.weft.examples.train.RankReport;
import io.weft.examples.train.TrainingPlan;
import io.weft.spark.feed.WeftFeed;
import io.weft.spark.feed.WeftTensors;
import io.weft.spark.gpu.jcuda.JcudaBatches;
import io.weft.spark.sql.WeftGpu;
import java.io.Serializable;
import java.util.List;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.functions;

/**
 * Scans Parquet, puts the rows on the executors' GPUs, makes features there with a kernel, and
 * trains a classifier on a feed of them. The features are compared with those of Spark SQL.
 *
 * @param folder for the files, accessible to every executor
 * @param rows of the table
 * @param ranks tasks that train
 * @param batchRows of each rank's batches
 */
public record GpuTraining(String folder, long rows, int ranks, int batchRows, int epochs)
    implements SideTask<GpuTraining.Outcome> {
  private static final int FEATURES = 3;
  private static final double MEAN = 511.5;
  private static final double SCALE = 1.0 / 256;
  private static final int FILES = 4;

  /**
   * The outcome.
   *
   * @param rows that have features
   * @param different rows whose features are not those of Spark SQL
   * @param trained rows of all steps and ranks
   * @param firstLoss of the first step; 0.69 is that of a guess between the two classes
   */
  public record Outcome(
      long rows, long different, long trained, double firstLoss, double lastLoss, double seconds)
      implements Serializable {}

  @Override
  public Outcome run(SparkSession session) {
    String table = folder + "/table";
    session.range(0, rows, 1, FILES).selectExpr(columns()).write().parquet(table);
    Dataset<Row> scanned = session.read().parquet(table).select("a", "b", "c", "label");
    Dataset<Row> bySpark = bySpark(scanned);
    FeatureKernel kernel = FeatureKernel.of(FEATURES, MEAN, SCALE);
    Dataset<Row> features =
        WeftGpu.mapBatches(
            WeftGpu.onDevice(scanned),
            bySpark.schema(),
            JcudaBatches.function(scanned.schema(), kernel));
    long different = features.exceptAll(bySpark).count() + bySpark.exceptAll(features).count();
    TrainingPlan plan =
        new TrainingPlan(
            new ModelShape(FEATURES, List.of(), 2), epochs, 1, 0.01, 16 << 10, folder, 1000);
    long start = System.nanoTime();
    List<RankReport> reports =
        WeftFeed.shards(features, ranks)
            .batchRows(batchRows)
            .shuffled(1)
            .train(new FeedTraining(plan, new LinearModel()));
    double seconds = (System.nanoTime() - start) / 1e9;
    return new Outcome(
        features.count(),
        different,
        reports.stream().mapToLong(RankReport::rows).sum(),
        firstLoss(plan),
        reports.get(0).lastLoss(),
        seconds);
  }

  private static double firstLoss(TrainingPlan plan) {
    try {
      return plan.losses().read().firstEntry().getValue();
    } catch (java.io.IOException e) {
      throw new java.io.UncheckedIOException(e);
    }
  }

  /** Three numbers with nulls among them, and a class that a linear model can learn. */
  private static String[] columns() {
    String number = "cast(hash(id, %d) & 1023 as double)";
    String a = number.formatted(1);
    String b = number.formatted(2);
    String c = number.formatted(3);
    return new String[] {
      "if(id %% 17 = 0, null, %s) a".formatted(a),
      "if(id %% 19 = 0, null, %s) b".formatted(b),
      c + " c",
      "if(%s + 2 * %s - 3 * %s > 0, 1, 0) label".formatted(a, b, c)
    };
  }

  /** The same features by Spark SQL, with the schema that the feed takes as tensors. */
  private static Dataset<Row> bySpark(Dataset<Row> scanned) {
    String feature = "cast(nvl((%s - " + MEAN + "D) * " + SCALE + "D, 0D) as float)";
    Dataset<Row> made =
        scanned.selectExpr(
            "array(%s, %s, %s) %s"
                .formatted(
                    feature.formatted("a"),
                    feature.formatted("b"),
                    feature.formatted("c"),
                    PriceClasses.FEATURES),
            "label");
    return made.select(
        WeftTensors.column(PriceClasses.FEATURES, DataType.FLOAT32, FEATURES),
        functions.col("label"));
  }
}
