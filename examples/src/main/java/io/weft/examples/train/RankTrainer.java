package io.weft.examples.train;

import io.weft.collectives.Communicator;
import io.weft.collectives.DataType;
import io.weft.collectives.ReduceOp;
import io.weft.collectives.TypedBuffer;
import io.weft.device.Deadline;
import io.weft.memory.Memory;
import io.weft.tensor.Tensor;
import io.weft.tensor.TensorType;
import io.weft.training.Adam;
import io.weft.training.CheckpointPosition;
import io.weft.training.Checkpoints;
import io.weft.training.GradientAccumulator;
import io.weft.training.GradientBuckets;
import io.weft.training.GradientWrite;
import io.weft.training.SoftmaxCrossEntropy;
import io.weft.training.Weights;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.zip.CRC32C;

/**
 * Runs one rank of a data-parallel training. Every rank has the whole model and a part of each
 * batch. Gradients are averaged, so all ranks take the same steps and their models stay equal. It
 * begins at the newest checkpoint, if there is one. For one thread.
 */
final class RankTrainer implements AutoCloseable {
  private static final int CHECKPOINTS_KEPT = 2;

  private final TrainingPlan plan;
  private final BatchSource source;
  private final Communicator communicator;
  private final TrainingModel model;
  private final GradientBuckets buckets;
  private final GradientAccumulator accumulator;
  private final List<TypedBuffer> gradients = new ArrayList<>();
  private final List<Weights> weights = new ArrayList<>();
  private Adam adam;
  private final Checkpoints checkpoints;

  /** Of the gradients' type, so that it can be averaged together with a small last bucket. */
  private final Tensor loss = Tensor.allocate(TensorType.of(DataType.FLOAT32, 1));

  private Tensor logitGradient = Tensor.empty(DataType.FLOAT32);
  private long rows;
  private long steps;
  private double lastLoss;
  private long waitNanos;

  /** Opens the trainer; collective. The caller owns the model. */
  RankTrainer(TrainingPlan plan, BatchSource source, TrainingModel model) {
    this.plan = plan;
    this.source = source;
    this.model = model;
    this.communicator = source.communicator();
    this.buckets = GradientBuckets.open(communicator, model.parameters(), plan.bucketBytes());
    this.accumulator = GradientAccumulator.over(buckets, 1);
    this.checkpoints = new Checkpoints(plan.checkpoints(), CHECKPOINTS_KEPT);
    try {
      bind();
    } catch (RuntimeException | Error e) {
      buckets.close();
      loss.close();
      throw e;
    }
  }

  private void bind() {
    for (int i = 0; i < model.parameters().size(); i++) {
      gradients.add(buckets.gradient(i));
      weights.add(Weights.original(i, model.values().get(i)));
    }
    model.bindGradients(gradients);
    buckets.recordEnd(List.of(loss.buffer()));
    adam = new Adam(model.parameters(), plan.adam());
  }

  /** Trains to the end of the plan. */
  RankReport run() throws IOException {
    requireSteps();
    CheckpointPosition position = begin();
    long firstStep = position.epoch() * source.steps() + position.step();
    long start = System.nanoTime();
    for (int epoch = (int) position.epoch(); epoch < plan.epochs(); epoch++) {
      runEpoch(epoch, epoch == position.epoch() ? position.step() : 0);
    }
    double seconds = (System.nanoTime() - start) / 1e9;
    save(new CheckpointPosition(plan.epochs(), 0));
    if (steps == 0) {
      lastLoss = lossOfEarlierRun();
    }
    return new RankReport(
        communicator.rank(),
        firstStep,
        steps,
        rows,
        lastLoss,
        seconds,
        waitNanos / 1e9,
        source.copiedBytes(),
        parametersCrc());
  }

  private void requireSteps() {
    if (source.steps() == 0) {
      throw new IllegalArgumentException(
          "there is no step to train, because the rows do not fill a batch of each rank; use"
              + " smaller batches or more rows");
    }
  }

  /** Returns the last loss of an earlier run that finished the training but did not report. */
  private double lossOfEarlierRun() throws IOException {
    Map.Entry<Long, Double> last = plan.losses().read().lastEntry();
    return last == null ? Double.NaN : last.getValue();
  }

  /** Restores the newest checkpoint. All ranks must find the same one. */
  private CheckpointPosition begin() throws IOException {
    if (communicator.rank() == 0) {
      Files.createDirectories(Path.of(plan.folder()));
      plan.losses().begin(plan.epochs() * source.steps());
    }
    CheckpointPosition position =
        checkpoints
            .loadNewest(model.parameters(), model.values(), adam)
            .orElse(CheckpointPosition.START);
    requireSame(position);
    if (position.equals(CheckpointPosition.START)) {
      model.values().forEach(values -> communicator.broadcast(values, 0));
    }
    return position;
  }

  /** Throws an IOException, so that Spark retries: shared file systems may show files late. */
  private void requireSame(CheckpointPosition position) throws IOException {
    try (Tensor mine = Tensor.allocate(TensorType.of(DataType.INT64, 2));
        Tensor first = Tensor.allocate(TensorType.of(DataType.INT64, 2))) {
      Memory.putLong(mine.address(), position.epoch());
      Memory.putLong(mine.address() + 8, position.step());
      communicator.allReduce(mine.buffer(), first.buffer(), ReduceOp.MIN);
      communicator.allReduce(mine.buffer(), ReduceOp.MAX);
      for (long offset = 0; offset <= 8; offset += 8) {
        if (Memory.getLong(mine.address() + offset) != Memory.getLong(first.address() + offset)) {
          throw new IOException(
              "rank "
                  + communicator.rank()
                  + " would begin at "
                  + position
                  + ", and another rank elsewhere: do all reach "
                  + plan.folder()
                  + "?");
        }
      }
    }
  }

  private void runEpoch(int epoch, long done) throws IOException {
    try (BatchSource.Batches batches = source.batches(epoch)) {
      for (long step = 0; batches.hasNext(); step++) {
        BatchSource.Batch batch = batches.next();
        if (step >= done) {
          step(batch);
          record(epoch, step);
        }
      }
    }
  }

  private void step(BatchSource.Batch batch) {
    int classes = plan.shape().classes();
    accumulator.begin();
    TypedBuffer logits = model.forward(batch.features(), true);
    SoftmaxCrossEntropy.Pass pass =
        SoftmaxCrossEntropy.MEAN.forward(logits, classes, batch.labels());
    TypedBuffer gradient = logitGradient(logits.count());
    pass.backward(1, gradient, GradientWrite.REPLACE);
    model.backward(gradient, parameter -> accumulator.added(weights.get(parameter)));
    Memory.putFloat(loss.address(), (float) pass.loss());
    long start = System.nanoTime();
    buckets.await(Deadline.after(communicator.timeout()));
    waitNanos += System.nanoTime() - start;
    adam.step(model.values(), gradients);
    lastLoss = Memory.getFloat(loss.address());
    rows += batch.rows();
    steps++;
  }

  private TypedBuffer logitGradient(long count) {
    if (logitGradient.type().elements() < count) {
      logitGradient.close();
      logitGradient = Tensor.allocate(TensorType.of(DataType.FLOAT32, count));
    }
    return logitGradient.buffer().slice(0, count);
  }

  private void record(int epoch, long step) throws IOException {
    if (communicator.rank() == 0) {
      plan.losses().append(epoch * source.steps() + step, lastLoss);
    }
    if (steps % plan.checkpointSteps() == 0) {
      save(new CheckpointPosition(epoch, step + 1));
    }
  }

  /** Writes a checkpoint on rank 0 only, because parameters are equal on all ranks. */
  private void save(CheckpointPosition position) throws IOException {
    if (communicator.rank() == 0) {
      checkpoints.save(position, model.parameters(), model.values(), adam);
    }
  }

  private long parametersCrc() {
    CRC32C crc = new CRC32C();
    for (TypedBuffer values : model.values()) {
      crc.update(Memory.view(values.owner(), values.address(), (int) values.bytes()));
    }
    return crc.getValue();
  }

  @Override
  public void close() {
    buckets.close();
    adam.close();
    loss.close();
    logitGradient.close();
  }
}
