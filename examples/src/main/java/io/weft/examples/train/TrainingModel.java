package io.weft.examples.train;

import io.weft.collectives.TypedBuffer;
import io.weft.tensor.Tensor;
import io.weft.training.ParameterSpec;
import java.util.List;
import java.util.function.IntConsumer;

/**
 * A classifier of a model library, with parameters and gradients in memory, a forward pass and a
 * backward pass. For one thread.
 */
public interface TrainingModel extends AutoCloseable {
  /** Returns the parameters in the order of the forward pass. */
  List<ParameterSpec> parameters();

  /** Returns the memory of the parameters. The next forward pass uses values written there. */
  List<TypedBuffer> values();

  /**
   * Sets the memory of the gradients, once, before the first step. {@link #backward} adds to it.
   *
   * @param places one for each parameter, valid until after the last backward pass
   */
  void bindGradients(List<TypedBuffer> places);

  /**
   * Computes the logits of a batch.
   *
   * @param features [rows, features], float32; read in place, unchanged until {@link #backward}
   * @param training whether a backward pass follows
   * @return [rows, classes], float32; valid until the next call
   */
  TypedBuffer forward(Tensor features, boolean training);

  /**
   * Adds the gradients of the last batch to their places, from the last layer to the first.
   *
   * @param logitGradient with the shape of the logits
   * @param ready called with the number of a parameter as soon as its gradient is complete
   */
  void backward(TypedBuffer logitGradient, IntConsumer ready);

  @Override
  void close();
}
