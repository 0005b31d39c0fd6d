package io.weft.examples.train;

import io.weft.collectives.TypedBuffer;
import io.weft.examples.side.SideTask;
import io.weft.memory.Memory;
import io.weft.spark.feed.FeedFunction;
import io.weft.spark.feed.FeedTask;
import io.weft.spark.feed.LastBatch;
import io.weft.spark.feed.WeftFeed;
import io.weft.training.Adam;
import io.weft.training.Checkpoints;
import java.io.IOException;
import java.io.Serializable;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;

/**
 * Trains one model, from tables to the test.
 *
 * @param ranks number of tasks that train
 * @param batchRows of each rank's batches
 * @param restarts upper limit of restarts after a failure
 */
record TrainOnce(HandOff handOff, TrainingPlan plan, int ranks, int batchRows, int restarts)
    implements SideTask<TrainOnce.Outcome> {
  private static final String ENABLED = "spark.weft.enabled";

  @Override
  public Outcome run(SparkSession session) throws Exception {
    ModelProvider models = ModelProvider.find();
    boolean feed = handOff == HandOff.FEED;
    // The setting affects shuffles only, not communicators.
    session.conf().set(ENABLED, Boolean.toString(feed));
    Path files = Path.of(plan.folder(), "parquet");
    double seconds;
    List<RankReport> reports;
    try {
      // Computes the bounds of the classes, which takes equally long for both hand-offs.
      Dataset<Row> rows = PriceClasses.of(session, false);
      long start = System.nanoTime();
      reports = feed ? throughFeed(rows, models) : throughFiles(rows, models, files);
      seconds = (System.nanoTime() - start) / 1e9;
    } finally {
      session.conf().set(ENABLED, "true");
    }
    return new Outcome(
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

  /** The ways to hand rows to ranks. */
  enum HandOff {
    /** A Weft feed: rows are exchanged in memory and read in place. */
    FEED("Weft feed"),
    /** Spark's sort shuffle and a Parquet file for each rank. */
    PARQUET("Spark + Parquet");

    private final String label;

    HandOff(String label) {
      this.label = label;
    }

    /** The name in tables. */
    String label() {
      return label;
    }
  }

  /**
   * The outcome of one training.
   *
   * @param handOff the way to hand rows to ranks
   * @param seconds from the first SQL query to the last step
   * @param fileBytes of Parquet, written for the ranks
   * @param ranks the reports of all ranks about the run that finished
   * @param accuracy on the test set, 0 to 1
   */
  record Outcome(
      HandOff handOff, double seconds, long fileBytes, List<RankReport> ranks, double accuracy)
      implements Serializable {

    /** Returns the time of the steps on the slowest rank. */
    double stepSeconds() {
      return ranks.stream().mapToDouble(RankReport::seconds).max().orElse(0);
    }

    /** Returns the time of everything but the steps: SQL, exchange or files, opening models. */
    double handOffSeconds() {
      return seconds - stepSeconds();
    }

    /** Returns the bytes that all ranks copied to form batches. */
    long copiedBytes() {
      return ranks.stream().mapToLong(RankReport::copiedBytes).sum();
    }

    /** Returns the steps of all runs of this training. */
    long trainedSteps() {
      return ranks.get(0).trainedSteps();
    }

    double lastLoss() {
      return ranks.get(0).lastLoss();
    }
  }

  /**
   * The function of a rank of a feed: it counts the rows that the trained model classifies right.
   *
   * @param models creates the rank's model
   */
  record FeedEvaluation(TrainingPlan plan, ModelProvider models)
      implements FeedFunction<FeedEvaluation.Score> {
    /** The score of one rank, or of several. */
    record Score(long rows, long right) implements Serializable {
      /** Returns the sum of both. */
      Score plus(Score other) {
        return new Score(rows + other.rows, right + other.right);
      }

      /** Returns the part of right rows, 0 to 1. */
      double accuracy() {
        return rows == 0 ? 0 : (double) right / rows;
      }
    }

    @Override
    public Score run(FeedTask task) throws Exception {
      FeedTraining.FeedSource source = new FeedTraining.FeedSource(task);
      try (TrainingModel model = models.open(plan.shape(), plan.seed());
          Adam state = new Adam(model.parameters(), plan.adam());
          BatchSource.Batches batches = source.batches(0)) {
        boolean found =
            new Checkpoints(plan.checkpoints(), 1)
                .loadNewest(model.parameters(), model.values(), state)
                .isPresent();
        if (!found) {
          throw new IllegalStateException("no checkpoint in " + plan.checkpoints());
        }
        Score score = new Score(0, 0);
        while (batches.hasNext()) {
          BatchSource.Batch batch = batches.next();
          // A last batch may be empty, because the feed keeps last batches.
          if (batch.rows() > 0) {
            score = score.plus(score(model, batch));
          }
        }
        return score;
      }
    }

    private Score score(TrainingModel model, BatchSource.Batch batch) {
      TypedBuffer logits = model.forward(batch.features(), false);
      int classes = plan.shape().classes();
      long right = 0;
      for (long row = 0; row < batch.rows(); row++) {
        int label = Memory.getInt(batch.labels().address() + 4 * row);
        if (mostLikely(logits.address() + 4 * row * classes, classes) == label) {
          right++;
        }
      }
      return new Score(batch.rows(), right);
    }

    private static int mostLikely(long address, int classes) {
      int best = 0;
      for (int i = 1; i < classes; i++) {
        if (Memory.getFloat(address + 4L * i) > Memory.getFloat(address + 4L * best)) {
          best = i;
        }
      }
      return best;
    }
  }
}
