package io.weft.tests.application;

import io.weft.collectives.TypedBuffer;
import io.weft.examples.etl.LinearModel;
import io.weft.examples.train.ModelProvider;
import io.weft.examples.train.ModelShape;
import io.weft.examples.train.TrainingModel;
import io.weft.tensor.Tensor;
import io.weft.training.ParameterSpec;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.IntConsumer;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext;

/**
 * Classifiers of one layer without bias, so that the trainer can be tested without a library for
 * models.
 *
 * @param note a file; while it does not exist, the model of rank 1 writes its executor's id to it
 *     and waits to be killed
 * @param stopAt the forward pass at which it does so; never, if below zero
 */
public record LinearModels(String note, int stopAt) implements ModelProvider {
  /** Models that are never stopped. */
  public static final LinearModels UNDISTURBED = new LinearModels("", -1);

  private static final long LIMIT_NANOS = TimeUnit.MINUTES.toNanos(2);

  @Override
  public String name() {
    return "one linear layer";
  }

  @Override
  public void prepare() {
    // All steps are short here.
  }

  @Override
  public TrainingModel open(ModelShape shape, long seed) {
    return new Linear(new LinearModel().open(shape, seed), this);
  }

  private void passed(int passes) {
    Path file = Path.of(note);
    boolean stop = passes == stopAt && TaskContext.getPartitionId() == 1 && !Files.exists(file);
    if (stop) {
      try {
        Path draft = Files.createTempFile(file.getParent(), "draft-", ".txt");
        Files.writeString(draft, SparkEnv.get().executorId());
        Files.move(draft, file);
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
      long deadline = System.nanoTime() + LIMIT_NANOS;
      while (System.nanoTime() < deadline) {
        LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(20));
      }
    }
  }

  /** A model of the example that stops at a forward pass. */
  private static final class Linear implements TrainingModel {
    private final LinearModels models;
    private final TrainingModel model;
    private int passes;

    Linear(TrainingModel model, LinearModels models) {
      this.model = model;
      this.models = models;
    }

    @Override
    public List<ParameterSpec> parameters() {
      return model.parameters();
    }

    @Override
    public List<TypedBuffer> values() {
      return model.values();
    }

    @Override
    public void bindGradients(List<TypedBuffer> places) {
      model.bindGradients(places);
    }

    @Override
    public TypedBuffer forward(Tensor features, boolean training) {
      models.passed(passes);
      passes++;
      return model.forward(features, training);
    }

    @Override
    public void backward(TypedBuffer logitGradient, IntConsumer ready) {
      model.backward(logitGradient, ready);
    }

    @Override
    public void close() {
      model.close();
    }
  }
}
