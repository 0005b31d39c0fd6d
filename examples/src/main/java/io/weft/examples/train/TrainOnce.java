package io.weft.examples.train;

import io.weft.examples.side.SideTask;
import io.weft.spark.feed.LastBatch;
import io.weft.spark.feed.WeftFeed;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;

/**
 * Trains once, from tables to a tested model.
 *
 * @param ranks tasks to train in
 * @param batchRows of each rank's batches
 * @param restarts at most, after a rank failed
 */
record TrainOnce(HandOff handOff, TrainingPlan plan, int ranks, int batchRows, int restarts)
    implements SideTask<TrainOutcome> {
  private static final String ENABLED = "spark.weft.enabled";

  @Override
  public TrainOutcome run(SparkSession session) throws Exception {
    ModelProvider models = ModelProvider.find();
    boolean feed = handOff == HandOff.FEED;
    // Communicators are the plugin's and stay; this is about shuffles.
    session.conf().set(ENABLED, Boolean.toString(feed));
    Path files = Path.of(plan.folder(), "parquet");
    double seconds;
    List<RankReport> reports;
    try {
      // Looks the classes' bounds up, which is the same for both.
      Dataset<Row> rows = PriceClasses.of(session, false);
      long start = System.nanoTime();
      reports = feed ? throughFeed(rows, models) : throughFiles(rows, models, files);
      seconds = (System.nanoTime() - start) / 1e9;
    } finally {
      session.conf().set(ENABLED, "true");
    }
    return new TrainOutcome(
        handOff, seconds, bytes(files), new ArrayList<>(reports), accuracy(session, models));
  }

  private List<RankReport> throughFeed(Dataset<Row> rows, ModelProvider models) throws Exception {
    WeftFeed feed = WeftFeed.shards(rows, ranks).batchRows(batchRows).shuffled(plan.seed());
    return Restarts.train(feed, new FeedTraining(plan, models), restarts);
  }

  private List<RankReport> throughFiles(Dataset<Row> rows, ModelProvider models, Path files) {
    rows.repartition(ranks).write().parquet(files.toString());
    return BarrierRanks.run(
        rows.sparkSession().sparkContext(),
        ranks,
        new ParquetTraining(plan, models, files.toString(), batchRows, plan.seed()));
  }

  private double accuracy(SparkSession session, ModelProvider models) {
    return WeftFeed.shards(PriceClasses.of(session, true), ranks)
        .batchRows(batchRows)
        .lastBatch(LastBatch.KEEP)
        .train(new FeedEvaluation(plan, models))
        .stream()
        .reduce(new FeedEvaluation.Score(0, 0), FeedEvaluation.Score::plus)
        .accuracy();
  }

  private static long bytes(Path folder) throws IOException {
    long bytes = 0;
    if (Files.isDirectory(folder)) {
      for (Path file : ParquetRows.files(folder)) {
        bytes += Files.size(file);
      }
    }
    return bytes;
  }
}
