package io.weft.examples.etl;

import io.weft.collectives.DataType;
import io.weft.collectives.TypedBuffer;
import io.weft.examples.train.ModelProvider;
import io.weft.examples.train.ModelShape;
import io.weft.examples.train.TrainingModel;
import io.weft.memory.Memory;
import io.weft.tensor.Tensor;
import io.weft.tensor.TensorType;
import io.weft.training.ParameterSpec;
import java.util.List;
import java.util.function.IntConsumer;

/** Classifiers of one layer without bias, on the host, so that no model library is needed. */
public record LinearModel() implements ModelProvider {
  @Override
  public String name() {
    return "one linear layer";
  }

  @Override
  public void prepare() {
    // There is no native code.
  }

  @Override
  public TrainingModel open(ModelShape shape, long seed) {
    return new Layer(shape);
  }

  private static final class Layer implements TrainingModel {
    private final int features;
    private final int classes;
    private final Tensor weight;
    private TypedBuffer gradient;
    private Tensor input;
    private Tensor logits = Tensor.empty(DataType.FLOAT32);

    Layer(ModelShape shape) {
      this.features = shape.features();
      this.classes = shape.classes();
      this.weight = Tensor.allocate(TensorType.of(DataType.FLOAT32, classes, features));
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
      return Memory.getFloat(address + Float.BYTES * index);
    }

    @Override
    public TypedBuffer forward(Tensor batch, boolean training) {
      input = batch;
      long rows = batch.type().dimension(0);
      if (logits.type().elements() < rows * classes) {
        logits.close();
        logits = Tensor.allocate(TensorType.of(DataType.FLOAT32, rows * classes));
      }
      for (long row = 0; row < rows; row++) {
        for (int c = 0; c < classes; c++) {
          float sum = 0;
          for (int i = 0; i < features; i++) {
            sum +=
                get(weight.address(), (long) c * features + i)
                    * get(batch.address(), row * features + i);
          }
          Memory.putFloat(logits.address() + Float.BYTES * (row * classes + c), sum);
        }
      }
      return logits.buffer().slice(0, rows * classes);
    }

    @Override
    public void backward(TypedBuffer logitGradient, IntConsumer ready) {
      for (long row = 0; row < input.type().dimension(0); row++) {
        for (int c = 0; c < classes; c++) {
          float share = get(logitGradient.address(), row * classes + c);
          for (int i = 0; i < features; i++) {
            long at = gradient.address() + (long) Float.BYTES * (c * features + i);
            float more = share * get(input.address(), row * features + i);
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
