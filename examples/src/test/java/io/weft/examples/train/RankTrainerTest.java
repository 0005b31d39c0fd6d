package io.weft.examples.train;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import io.weft.collectives.Bootstrap;
import io.weft.collectives.Communicator;
import io.weft.collectives.CommunicatorOptions;
import io.weft.collectives.DataType;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.bootstrap.ThreadBootstrap;
import io.weft.collectives.local.LocalCommunicator;
import io.weft.memory.Memory;
import io.weft.tensor.Tensor;
import io.weft.tensor.TensorType;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.NavigableMap;
import java.util.SplittableRandom;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class RankTrainerTest {
  private static final int GLOBAL_ROWS = 64;
  private static final int STEPS = 10;
  private static final ModelShape SHAPE = new ModelShape(6, List.of(), 3);

  @TempDir Path folder;

  /** The class of a row is the largest of its first three features. */
  private static final class Rows implements BatchSource {
    private final Communicator communicator;
    private final Tensor features;
    private final Tensor labels;
    private final int failAfter;
    private int served;

    Rows(Communicator communicator, int failAfter) {
      this.communicator = communicator;
      this.failAfter = failAfter;
      int rows = GLOBAL_ROWS * STEPS;
      features = Tensor.allocate(TensorType.of(DataType.FLOAT32, rows, 6));
      labels = Tensor.allocate(TensorType.of(DataType.INT32, rows));
      SplittableRandom random = new SplittableRandom(3);
      for (int row = 0; row < rows; row++) {
        int best = 0;
        float[] values = new float[6];
        for (int i = 0; i < 6; i++) {
          values[i] = (float) random.nextDouble(-1, 1);
          Memory.putFloat(features.address() + 4L * (row * 6 + i), values[i]);
          best = i < 3 && values[i] > values[best] ? i : best;
        }
        Memory.putInt(labels.address() + 4L * row, best);
      }
    }

    @Override
    public Communicator communicator() {
      return communicator;
    }

    @Override
    public long steps() {
      return STEPS;
    }

    @Override
    public long copiedBytes() {
      return 0;
    }

    @Override
    public Batches batches(int epoch) {
      return new Batches() {
        private int next;

        @Override
        public boolean hasNext() {
          return next < STEPS;
        }

        @Override
        public Batch next() {
          if (served == failAfter) {
            throw new IllegalStateException("the executor is lost, as the test asked");
          }
          served++;
          int each = GLOBAL_ROWS / communicator.nranks();
          long first = (long) next * GLOBAL_ROWS + (long) communicator.rank() * each;
          next++;
          TypedBuffer own = labels.rows(first, each).buffer();
          return new Batch(features.rows(first, each), own);
        }

        @Override
        public void close() {
          next = STEPS;
        }
      };
    }
  }

  private TrainingPlan plan(String name, int epochs) {
    return new TrainingPlan(SHAPE, epochs, 5, 0.05, 64, folder.resolve(name).toString(), 4);
  }

  private static List<RankReport> train(TrainingPlan plan, int ranks, int failAfter)
      throws Exception {
    return train(Collections.nCopies(ranks, plan), failAfter);
  }

  /** A plan for each rank. */
  private static List<RankReport> train(List<TrainingPlan> plans, int failAfter) throws Exception {
    int ranks = plans.size();
    ExecutorService threads = Executors.newFixedThreadPool(ranks);
    try {
      List<Future<RankReport>> running = new ArrayList<>();
      CommunicatorOptions options = CommunicatorOptions.DEFAULT.withTimeout(Duration.ofSeconds(60));
      List<TrainingPlan> left = new ArrayList<>(plans);
      for (Bootstrap bootstrap : ThreadBootstrap.open(ranks)) {
        TrainingPlan plan = left.remove(0);
        running.add(
            threads.submit(
                () -> {
                  try (Communicator communicator = LocalCommunicator.create(bootstrap, options);
                      LinearModel model =
                          new LinearModel(SHAPE, plan.seed() + communicator.rank());
                      RankTrainer trainer =
                          new RankTrainer(plan, new Rows(communicator, failAfter), model)) {
                    return trainer.run();
                  }
                }));
      }
      List<RankReport> reports = new ArrayList<>();
      for (Future<RankReport> each : running) {
        reports.add(each.get(2, TimeUnit.MINUTES));
      }
      return reports;
    } finally {
      threads.shutdownNow();
    }
  }

  @Test
  void twoRanksReachTheLossOfOneWithTheSameGlobalBatch() throws Exception {
    RankReport one = train(plan("one", 5), 1, -1).get(0);
    List<RankReport> two = train(plan("two", 5), 2, -1);
    assertThat(two.get(0).lastLoss()).isLessThan(0.8);
    assertThat(two.get(0).lastLoss()).isEqualTo(two.get(1).lastLoss());
    assertThat(two.get(0).lastLoss()).isCloseTo(one.lastLoss(), within(1e-3));
    assertThat(two.get(0).parametersCrc()).isEqualTo(two.get(1).parametersCrc());
    assertThat(one.steps()).isEqualTo(5 * STEPS);
    assertThat(two.get(0).rows() + two.get(1).rows()).isEqualTo(one.rows());
    NavigableMap<Long, Double> losses = plan("two", 5).losses().read();
    assertThat(losses).hasSize(5 * STEPS);
    assertThat(losses.get(0L)).isGreaterThan(1);
  }

  @Test
  void rowsThatDoNotFillABatchAreAnError() {
    BatchSource none =
        new BatchSource() {
          private final Communicator communicator =
              LocalCommunicator.create(ThreadBootstrap.open(1).get(0), CommunicatorOptions.DEFAULT);

          @Override
          public Communicator communicator() {
            return communicator;
          }

          @Override
          public long steps() {
            return 0;
          }

          @Override
          public Batches batches(int epoch) {
            throw new AssertionError("there are none");
          }

          @Override
          public long copiedBytes() {
            return 0;
          }
        };
    try (Communicator communicator = none.communicator();
        LinearModel model = new LinearModel(SHAPE, 1);
        RankTrainer trainer = new RankTrainer(plan("none", 1), none, model)) {
      assertThat(communicator.nranks()).isEqualTo(1);
      assertThatThrownBy(trainer::run)
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("smaller batches");
    }
  }

  /** The rank was lost after its last step but before its report. */
  @Test
  void aFinishedTrainingIsReportedAgain() throws Exception {
    TrainingPlan plan = plan("done", 2);
    RankReport first = train(plan, 2, -1).get(0);
    for (RankReport again : train(plan, 2, -1)) {
      assertThat(again.steps()).isZero();
      assertThat(again.trainedSteps()).isEqualTo(2 * STEPS).isEqualTo(first.trainedSteps());
      assertThat(again.lastLoss()).isEqualTo(first.lastLoss());
      assertThat(again.parametersCrc()).isEqualTo(first.parametersCrc());
    }
  }

  /** As when one host sees a checkpoint later than another. Then a restart may help. */
  @Test
  void differentCheckpointsOnRanksAreAnError() throws Exception {
    train(plan("ahead", 1), 1, -1);
    List<TrainingPlan> plans = List.of(plan("ahead", 1), plan("behind", 1));
    assertThatThrownBy(() -> train(plans, -1))
        .cause()
        .isInstanceOf(IOException.class)
        .hasMessageContaining("would begin at")
        .hasMessageContaining("do all reach");
  }

  @Test
  void aLostRankCostsOnlyTheStepsSinceTheLastCheckpoint() throws Exception {
    RankReport straight = train(plan("straight", 2), 2, -1).get(0);
    TrainingPlan plan = plan("lost", 2);
    assertThatThrownBy(() -> train(plan, 2, 14))
        .hasRootCauseMessage("the executor is lost, as the test asked");
    RankReport restarted = train(plan, 2, -1).get(0);
    assertThat(restarted.firstStep()).isEqualTo(12);
    assertThat(restarted.steps()).isEqualTo(8);
    assertThat(restarted.parametersCrc()).isEqualTo(straight.parametersCrc());
    assertThat(plan.losses().read()).isEqualTo(plan("straight", 2).losses().read());
  }
}
