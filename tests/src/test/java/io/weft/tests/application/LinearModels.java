package io.weft.tests.application;

import io.weft.collectives.DataType;
import io.weft.collectives.TypedBuffer;
import io.weft.examples.train.ModelProvider;
import io.weft.examples.train.ModelShape;
import io.weft.examples.train.TrainingModel;
import io.weft.memory.Memory;
import io.weft.tensor.Tensor;
import io.weft.tensor.TensorType;
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
    return new Linear(shape, this);
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

  private static final class Linear implements TrainingModel {
    private final ModelShape shape;
    private final LinearModels models;
    private final Tensor weight;
    private TypedBuffer gradient;
    private Tensor input;
    private Tensor logits = Tensor.empty(DataType.FLOAT32);
    private int passes;

    Linear(ModelShape shape, LinearModels models) {
      this.shape = shape;
      this.models = models;
      this.weight =
          Tensor.allocate(TensorType.of(DataType.FLOAT32, shape.classes(), shape.features()));
    }

    @Override
    public List<ParameterSpec> parameters() {
      return List.of(new ParameterSpec("weight", DataType.FLOAT32, weight.type().elements()));
    }

    @Override
    public List<TypedBuffer> values() {
      return List.of(weight.buffer());
    }

    @Override
    public void bindGradients(List<TypedBuffer> places) {
      gradient = places.get(0);
    }

    private static float get(long address, long index) {
      return Memory.getFloat(address + 4 * index);
    }

    @Override
    public TypedBuffer forward(Tensor features, boolean training) {
      models.passed(passes);
      passes++;
      input = features;
      long rows = features.type().dimension(0);
      logits.close();
      logits = Tensor.allocate(TensorType.of(DataType.FLOAT32, rows, shape.classes()));
      for (long row = 0; row < rows; row++) {
        for (int c = 0; c < shape.classes(); c++) {
          float sum = 0;
          for (int i = 0; i < shape.features(); i++) {
            sum +=
                get(weight.address(), (long) c * shape.features() + i)
                    * get(features.address(), row * shape.features() + i);
          }
          Memory.putFloat(logits.address() + 4 * (row * shape.classes() + c), sum);
        }
      }
      return logits.buffer();
    }

    @Override
    public void backward(TypedBuffer logitGradient, IntConsumer ready) {
      for (long row = 0; row < input.type().dimension(0); row++) {
        for (int c = 0; c < shape.classes(); c++) {
          float g = get(logitGradient.address(), row * shape.classes() + c);
          for (int i = 0; i < shape.features(); i++) {
            long at = gradient.address() + 4L * (c * shape.features() + i);
            float more = g * get(input.address(), row * shape.features() + i);
            Memory.putFloat(at, Memory.getFloat(at) + more);
          }
        }
      }
      ready.accept(0);
    }

    @Override
    public void close() {
      weight.close();
      logits.close();
    }
  }
}
