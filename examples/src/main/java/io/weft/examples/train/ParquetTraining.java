package io.weft.examples.train;

import io.weft.collectives.Communicator;
import java.nio.file.Path;

/**
 * What a rank does that is handed its data as a file of its own: reads it and trains by the plan.
 *
 * @param folder with a file for each rank
 * @param batchRows of a batch
 * @param seed of the order of rows
 */
record ParquetTraining(
    TrainingPlan plan, ModelProvider models, String folder, int batchRows, long seed)
    implements BarrierRanks.RankFunction<RankReport> {
  @Override
  public RankReport run(Communicator communicator) throws Exception {
    Path file = ParquetRows.files(Path.of(folder)).get(communicator.rank());
    try (ParquetRows rows = new ParquetRows(plan.shape().features())) {
      rows.read(file, PriceClasses.FEATURES, PriceClasses.LABEL);
      try (ParquetSource source =
              new ParquetSource(communicator, rows, plan.shape().features(), batchRows, seed);
          TrainingModel model = models.open(plan.shape(), plan.seed());
          RankTrainer trainer = new RankTrainer(plan, source, model)) {
        return trainer.run();
      }
    }
  }
}
