package io.weft.examples.train;

import io.weft.collectives.DataType;
import io.weft.collectives.TypedBuffer;
import io.weft.memory.Memory;
import io.weft.tensor.Tensor;
import io.weft.tensor.TensorType;
import io.weft.training.ParameterSpec;
import java.util.List;
import java.util.SplittableRandom;
import java.util.function.IntConsumer;

/** A model of one layer, to test the trainer without a model library. */
final class LinearModel implements TrainingModel {
  private final int inputs;
  private final int classes;
  private final Tensor weight;
  private final Tensor bias;
  private List<TypedBuffer> gradients;
  private Tensor features;
  private Tensor logits = Tensor.empty(DataType.FLOAT32);

  LinearModel(ModelShape shape, long seed) {
    this.inputs = shape.features();
    this.classes = shape.classes();
    this.weight = Tensor.allocate(TensorType.of(DataType.FLOAT32, classes, inputs));
    this.bias = Tensor.allocate(TensorType.of(DataType.FLOAT32, classes));
    SplittableRandom random = new SplittableRandom(seed);
    for (int i = 0; i < inputs * classes; i++) {
      Memory.putFloat(weight.address() + 4L * i, (float) random.nextDouble(-0.1, 0.1));
    }
  }

  @Override
  public List<ParameterSpec> parameters() {
    return List.of(
        new ParameterSpec("weight", DataType.FLOAT32, (long) inputs * classes),
        new ParameterSpec("bias", DataType.FLOAT32, classes));
  }

  @Override
  public List<TypedBuffer> values() {
    return List.of(weight.buffer(), bias.buffer());
  }

  @Override
  public void bindGradients(List<TypedBuffer> places) {
    gradients = places;
  }

  private static float get(Tensor tensor, long index) {
    return Memory.getFloat(tensor.address() + 4 * index);
  }

  private static void add(TypedBuffer buffer, long index, float more) {
    long address = buffer.address() + 4 * index;
    Memory.putFloat(address, Memory.getFloat(address) + more);
  }

  @Override
  public TypedBuffer forward(Tensor batch, boolean training) {
    features = batch;
    int rows = (int) batch.type().dimension(0);
    logits.close();
    logits = Tensor.allocate(TensorType.of(DataType.FLOAT32, rows, classes));
    for (int row = 0; row < rows; row++) {
      for (int c = 0; c < classes; c++) {
        float sum = get(bias, c);
        for (int i = 0; i < inputs; i++) {
          sum += get(weight, (long) c * inputs + i) * get(batch, (long) row * inputs + i);
        }
        Memory.putFloat(logits.address() + 4L * (row * classes + c), sum);
      }
    }
    return logits.buffer();
  }

  @Override
  public void backward(TypedBuffer logitGradient, IntConsumer ready) {
    long rows = features.type().dimension(0);
    for (long row = 0; row < rows; row++) {
      for (int c = 0; c < classes; c++) {
        float g = Memory.getFloat(logitGradient.address() + 4 * (row * classes + c));
        add(gradients.get(1), c, g);
        for (int i = 0; i < inputs; i++) {
          add(gradients.get(0), (long) c * inputs + i, g * get(features, row * inputs + i));
        }
      }
    }
    ready.accept(1);
    ready.accept(0);
  }

  @Override
  public void close() {
    weight.close();
    bias.close();
    logits.close();
  }
}
