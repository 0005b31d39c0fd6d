package io.weft.examples.train.djl;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Activation;
import ai.djl.nn.Parameter;
import ai.djl.nn.SequentialBlock;
import ai.djl.nn.core.Linear;
import ai.djl.pytorch.engine.PtNDArray;
import ai.djl.pytorch.jni.JniUtils;
import ai.djl.training.ParameterStore;
import ai.djl.util.Pair;
import io.weft.collectives.DataType;
import io.weft.collectives.TypedBuffer;
import io.weft.memory.Memory;
import io.weft.tensor.Tensor;
import io.weft.tensor.TensorType;
import io.weft.training.ParameterSpec;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;

/**
 * A linear layer with an optional activation, as a DJL block. Parameters and gradients are in
 * memory that Weft owns. For one thread.
 */
final class DjlLayer implements AutoCloseable {
  private final SequentialBlock block = new SequentialBlock();
  private final ParameterStore store;
  private final List<ParameterSpec> specs = new ArrayList<>();
  private final List<NDArray> arrays = new ArrayList<>();
  private final List<Tensor> values = new ArrayList<>();
  private final int inputs;
  private final boolean first;

  /** The input of the last forward pass. */
  private NDArray input;

  private NDArray output;

  /**
   * Creates a layer of a network.
   *
   * @param number from 0; layer 0 does not compute the gradient of its input
   */
  DjlLayer(NDManager manager, int number, int inputs, int units, boolean activated) {
    this.inputs = inputs;
    this.first = number == 0;
    this.store = new ParameterStore(manager, false);
    block.add(Linear.builder().setUnits(units).build());
    if (activated) {
      block.add(Activation.reluBlock());
    }
    block.initialize(manager, ai.djl.ndarray.types.DataType.FLOAT32, new Shape(1, inputs));
    for (Pair<String, Parameter> entry : block.getParameters()) {
      Parameter parameter = entry.getValue();
      NDArray array = parameter.getArray();
      specs.add(
          new ParameterSpec(
              "layer" + number + "." + parameter.getName(), DataType.FLOAT32, array.size()));
      arrays.add(array);
      values.add(Tensor.allocate(TensorType.of(DataType.FLOAT32, array.getShape().getShape())));
      moveTo(array, values.get(values.size() - 1).buffer());
    }
  }

  /** Makes the array use the memory of the buffer. */
  private static void moveTo(NDArray array, TypedBuffer buffer) {
    array.set(bytes(buffer));
    if (Memory.addressOf(array.toByteBuffer(true)) != buffer.address()) {
      throw new IllegalStateException(
          "DJL copied an array of shape " + array.getShape() + " instead of using " + buffer);
    }
  }

  private static ByteBuffer bytes(TypedBuffer buffer) {
    return Memory.view(buffer.owner(), buffer.address(), (int) buffer.bytes())
        .order(ByteOrder.nativeOrder());
  }

  /**
   * Sets random weights, uniform with the variance of He et al. (ICCV 2015), and zero biases. The
   * generator is Java's, so the weights do not depend on the library's seed.
   */
  void initialize(SplittableRandom random) {
    double bound = Math.sqrt(6.0 / inputs);
    for (int i = 0; i < values.size(); i++) {
      boolean weight = values.get(i).type().rank() > 1;
      long address = values.get(i).address();
      for (long element = 0; element < specs.get(i).count(); element++) {
        float value = weight ? (float) random.nextDouble(-bound, bound) : 0;
        Memory.putFloat(address + 4 * element, value);
      }
    }
  }

  List<ParameterSpec> parameters() {
    return specs;
  }

  List<TypedBuffer> values() {
    return values.stream().map(Tensor::buffer).toList();
  }

  /**
   * Makes PyTorch add gradients to these places. PyTorch allocates the array of a gradient in the
   * first backward pass and then adds to it. So this method runs one pass and replaces the arrays.
   */
  void bindGradients(NDManager manager, List<TypedBuffer> places) {
    try (NDManager pass = manager.newSubManager()) {
      JniUtils.setGradMode(true);
      forward(pass.zeros(new Shape(1, inputs)), pass, true);
      JniUtils.setGradMode(false);
      NDArray unused = backward(pass.zeros(output.getShape()));
      for (int i = 0; i < places.size(); i++) {
        NDArray gradient = arrays.get(i).getGradient();
        gradient.attach(manager);
        moveTo(gradient, places.get(i));
      }
    }
  }

  /**
   * Computes the layer's output.
   *
   * @param pass owns the arrays of this pass
   * @param training whether to record the operations for a backward pass to this layer's input
   */
  NDArray forward(NDArray from, NDManager pass, boolean training) {
    input = from;
    if (training && !first) {
      input = from.stopGradient();
      input.attach(pass);
      input.setRequiresGradient(true);
    }
    output = block.forward(store, new NDList(input), training).singletonOrThrow();
    output.attach(pass);
    return output;
  }

  /**
   * Adds this layer's gradients to their places.
   *
   * @param gradient with respect to the output
   * @return the gradient with respect to the input; null for the first layer
   */
  NDArray backward(NDArray gradient) {
    // DJL's gradient collector allows one backward pass at a time in a JVM; ranks may share a JVM.
    JniUtils.backward((PtNDArray) output, (PtNDArray) gradient, false, false);
    return first ? null : input.getGradient();
  }

  @Override
  public void close() {
    block.clear();
    values.forEach(Tensor::close);
  }
}
