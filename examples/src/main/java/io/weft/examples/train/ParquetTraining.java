package io.weft.examples.train;

import io.weft.collectives.Communicator;
import io.weft.collectives.DataType;
import io.weft.collectives.ReduceOp;
import io.weft.memory.Memory;
import io.weft.tensor.Tensor;
import io.weft.tensor.TensorType;
import java.nio.file.Path;
import java.util.SplittableRandom;

/**
 * The function of a rank that gets its data as a file: it reads the file and trains by the plan.
 *
 * @param folder with a file for each rank
 * @param batchRows rows of a batch
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

  /**
   * Batches of rows from a file, gathered row by row, in another order in every epoch. The
   * counterpart of a feed in the comparison.
   */
  static final class ParquetSource implements BatchSource, AutoCloseable {
    private final Communicator communicator;
    private final ParquetRows rows;
    private final long seed;
    private final int batchRows;
    private final long steps;
    private final Tensor features;
    private final Tensor labels;
    private final int width;
    private long gatheredBytes;

    /**
     * Creates a source. Collective: the rank with the fewest rows determines the number of steps.
     *
     * @param rows owned by the caller, who closes them after this source
     */
    ParquetSource(
        Communicator communicator, ParquetRows rows, int width, int batchRows, long seed) {
      this.communicator = communicator;
      this.rows = rows;
      this.width = width;
      this.batchRows = batchRows;
      this.seed = seed;
      this.features = Tensor.allocate(TensorType.of(DataType.FLOAT32, batchRows, width));
      this.labels = Tensor.allocate(TensorType.of(DataType.INT32, batchRows));
      try (Tensor least = Tensor.allocate(TensorType.of(DataType.INT64, 1))) {
        Memory.putLong(least.address(), rows.rows() / batchRows);
        communicator.allReduce(least.buffer(), ReduceOp.MIN);
        this.steps = Memory.getLong(least.address());
      }
    }

    @Override
    public Communicator communicator() {
      return communicator;
    }

    @Override
    public long steps() {
      return steps;
    }

    @Override
    public long copiedBytes() {
      return rows.copiedBytes() + gatheredBytes;
    }

    @Override
    public Batches batches(int epoch) {
      int[] order = order(epoch);
      return new Batches() {
        private int next;

        @Override
        public boolean hasNext() {
          return next < steps;
        }

        @Override
        public Batch next() {
          gather(order, next * batchRows);
          next++;
          return new Batch(features, labels.buffer());
        }

        @Override
        public void close() {
          next = (int) steps;
        }
      };
    }

    private void gather(int[] order, int first) {
      for (int i = 0; i < batchRows; i++) {
        int row = order[first + i];
        rows.copyRow(row, features.address() + 4L * width * i);
        Memory.putInt(labels.address() + 4L * i, rows.label(row));
      }
      gatheredBytes += features.type().bytes() + labels.type().bytes();
    }

    /** Returns a random permutation (Fisher and Yates). */
    private int[] order(int epoch) {
      int[] order = new int[Math.toIntExact(rows.rows())];
      SplittableRandom random = new SplittableRandom(seed + epoch);
      for (int i = 0; i < order.length; i++) {
        int other = random.nextInt(i + 1);
        order[i] = order[other];
        order[other] = i;
      }
      return order;
    }

    @Override
    public void close() {
      features.close();
      labels.close();
    }
  }
}
