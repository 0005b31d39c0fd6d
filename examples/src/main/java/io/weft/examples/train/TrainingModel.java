package io.weft.examples.train;

import io.weft.collectives.buffer.TypedBuffer;
import io.weft.tensor.Tensor;
import io.weft.training.ParameterSpec;
import java.util.List;
import java.util.function.IntConsumer;

/**
 * A classifier that some library runs, as a trainer sees it: parameters and gradients in memory, a
 * way forth and a way back. For one thread.
 */
public interface TrainingModel extends AutoCloseable {
  /** In the order of the forward pass. */
  List<ParameterSpec> parameters();

  /** Where the parameters lie; what is written there counts from the next forward pass on. */
  List<TypedBuffer> values();

  /**
   * Says where gradients go, once, before the first step: backward adds to what is there.
   *
   * @param places one for each parameter, which outlive the last backward pass
   */
  void bindGradients(List<TypedBuffer> places);

  /**
   * Computes the logits of a batch.
   *
   * @param features [rows, features], float32; read in place, unchanged until {@link #backward}
   * @param training whether backward will follow
   * @return rows times classes, float32; valid until the next call
   */
  TypedBuffer forward(Tensor features, boolean training);

  /**
   * Adds the gradients of the last batch to their places, from the last layer to the first.
   *
   * @param logitGradient as many elements as logits
   * @param ready told of a parameter as soon as its gradient is complete
   */
  void backward(TypedBuffer logitGradient, IntConsumer ready);

  @Override
  void close();
}
