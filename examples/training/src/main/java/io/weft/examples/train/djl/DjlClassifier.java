package io.weft.examples.train.djl;

import ai.djl.Device;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.Shape;
import ai.djl.pytorch.jni.JniUtils;
import io.weft.collectives.DataType;
import io.weft.collectives.TypedBuffer;
import io.weft.examples.train.ModelShape;
import io.weft.examples.train.TrainingModel;
import io.weft.memory.Memory;
import io.weft.tensor.Tensor;
import io.weft.training.ParameterSpec;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.function.IntConsumer;

/**
 * A classifier of consecutive DJL layers. The backward pass runs layer by layer from the output. So
 * the all-reduce of a layer's gradients overlaps with the backward pass of earlier layers. DJL has
 * no hook within a backward pass.
 */
final class DjlClassifier implements TrainingModel {
  private final NDManager manager;
  private final List<DjlLayer> layers = new ArrayList<>();
  private final List<ParameterSpec> parameters = new ArrayList<>();
  private final List<TypedBuffer> values = new ArrayList<>();
  private final int classes;

  /** Holds the arrays from a forward pass to the next one. */
  private NDManager pass;

  DjlClassifier(ModelShape shape, long seed) {
    this.manager = NDManager.newBaseManager(Device.cpu(), DjlModels.ENGINE);
    this.classes = shape.classes();
    List<Integer> units = new ArrayList<>(shape.hidden());
    units.add(shape.classes());
    SplittableRandom random = new SplittableRandom(seed);
    int inputs = shape.features();
    for (int i = 0; i < units.size(); i++) {
      boolean last = i == units.size() - 1;
      DjlLayer layer = new DjlLayer(manager, i, inputs, units.get(i), !last);
      layer.initialize(random);
      layers.add(layer);
      parameters.addAll(layer.parameters());
      values.addAll(layer.values());
      inputs = units.get(i);
    }
  }

  @Override
  public List<ParameterSpec> parameters() {
    return List.copyOf(parameters);
  }

  @Override
  public List<TypedBuffer> values() {
    return List.copyOf(values);
  }

  @Override
  public void bindGradients(List<TypedBuffer> places) {
    int first = 0;
    for (DjlLayer layer : layers) {
      int count = layer.parameters().size();
      layer.bindGradients(manager, places.subList(first, first + count));
      first += count;
    }
  }

  @Override
  public TypedBuffer forward(Tensor features, boolean training) {
    endPass();
    pass = manager.newSubManager();
    NDArray output = over(features, pass);
    JniUtils.setGradMode(training);
    try {
      for (DjlLayer layer : layers) {
        output = layer.forward(output, pass, training);
      }
    } finally {
      JniUtils.setGradMode(false);
    }
    ByteBuffer logits = output.toByteBuffer(true).order(ByteOrder.nativeOrder());
    return TypedBuffer.wrap(logits, DataType.FLOAT32);
  }

  /**
   * Returns an array over the elements. DJL wraps a direct buffer without a copy, and the reports
   * of copied bytes depend on that.
   *
   * @throws IllegalStateException if DJL copied the elements
   */
  static NDArray over(Tensor features, NDManager manager) {
    Shape shape = new Shape(features.type().shape());
    NDArray array =
        manager.create(features.byteBuffer(), shape, ai.djl.ndarray.types.DataType.FLOAT32);
    long address = Memory.addressOf(array.toByteBuffer(true));
    if (address != features.address()) {
      throw new IllegalStateException(
          "DJL copied a batch of %s from 0x%x to 0x%x"
              .formatted(features.type(), features.address(), address));
    }
    return array;
  }

  @Override
  public void backward(TypedBuffer logitGradient, IntConsumer ready) {
    ByteBuffer bytes =
        Memory.view(logitGradient.owner(), logitGradient.address(), (int) logitGradient.bytes());
    Shape shape = new Shape(logitGradient.count() / classes, classes);
    NDArray gradient =
        pass.create(
            bytes.order(ByteOrder.nativeOrder()), shape, ai.djl.ndarray.types.DataType.FLOAT32);
    int parameter = parameters.size();
    for (int i = layers.size() - 1; i >= 0; i--) {
      DjlLayer layer = layers.get(i);
      gradient = layer.backward(gradient);
      for (int own = 0; own < layer.parameters().size(); own++) {
        parameter--;
        ready.accept(parameter);
      }
    }
  }

  private void endPass() {
    if (pass != null) {
      pass.close();
      pass = null;
    }
  }

  @Override
  public void close() {
    endPass();
    layers.forEach(DjlLayer::close);
    manager.close();
  }
}
