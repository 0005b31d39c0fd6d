package io.weft.training;

import io.weft.collectives.DataType;
import io.weft.collectives.TypedBuffer;
import io.weft.memory.Memory;
import io.weft.tensor.Tensor;
import java.util.List;
import java.util.function.IntConsumer;
import java.util.stream.IntStream;

/**
 * Sums the gradients of several micro-batches in the gradient buffers of the original parameters,
 * such as those of {@link GradientBuckets}. If an operator works on a copy of the weights ({@link
 * Weights#copiedTo}), its gradient is still added to the original's buffer, and the original is
 * marked. Otherwise a reader of the parameter would find no gradient, and an average that overlaps
 * with the backward pass would miss it.
 *
 * <p>Frameworks that expect a gradient get {@link #standIn}, never null. For one thread.
 */
public final class GradientAccumulator {
  private final List<ParameterSpec> parameters;
  private final List<TypedBuffer> gradients;
  private final int microBatches;
  private final IntConsumer complete;
  private final int[] added;
  private final FloatTile sum = new FloatTile();
  private final FloatTile more = new FloatTile();

  /**
   * Creates an accumulator before its first step.
   *
   * @param gradients receive the sums, in the order of the parameters; FLOAT32 keeps small
   *     gradients that BFLOAT16 rounds away
   * @param microBatches gradients of each parameter in a step, 1 or more
   * @param complete called with a parameter when it has all its gradients, such as {@code
   *     buckets::ready}
   */
  public GradientAccumulator(
      List<ParameterSpec> parameters,
      List<TypedBuffer> gradients,
      int microBatches,
      IntConsumer complete) {
    if (microBatches < 1) {
      throw new IllegalArgumentException("a step of " + microBatches + " micro-batches");
    }
    if (gradients.size() != parameters.size()) {
      throw new IllegalArgumentException(
          gradients.size() + " buffers for " + parameters.size() + " parameters");
    }
    for (int i = 0; i < gradients.size(); i++) {
      parameters.get(i).requireFit("gradient", gradients.get(i));
    }
    this.parameters = List.copyOf(parameters);
    this.gradients = List.copyOf(gradients);
    this.microBatches = microBatches;
    this.complete = complete;
    this.added = new int[parameters.size()];
  }

  /** Creates an accumulator over the gradients of buckets, and calls ready on them. */
  public static GradientAccumulator over(GradientBuckets buckets, int microBatches) {
    List<TypedBuffer> places =
        IntStream.range(0, buckets.parameters().size()).mapToObj(buckets::gradient).toList();
    return new GradientAccumulator(buckets.parameters(), places, microBatches, buckets::ready);
  }

  /** Begins a step: clears all sums and marks. */
  public void begin() {
    for (int i = 0; i < added.length; i++) {
      TypedBuffer gradient = gradients.get(i);
      Memory.setMemory(gradient.address(), gradient.bytes(), (byte) 0);
      added[i] = 0;
    }
  }

  /**
   * Adds a micro-batch's gradient to the original parameter's sum, in float32.
   *
   * @param weights that the operator worked on
   * @param gradient FLOAT32 or BFLOAT16, of the size of the parameter; not the sum's own buffer
   * @return {@link #standIn} of the gradient's type, for frameworks that expect a gradient
   * @throws IllegalStateException if the parameter already has all gradients of this step
   */
  public TypedBuffer add(Weights weights, TypedBuffer gradient) {
    int parameter = weights.parameter();
    parameters.get(parameter).requireFit("gradient", gradient);
    TypedBuffer target = gradients.get(parameter);
    if (gradient.overlaps(target)) {
      throw new IllegalArgumentException(
          "the gradient of " + parameters.get(parameter) + " is already in its sum: call added()");
    }
    requireRoom(parameter);
    accumulate(gradient, target);
    mark(parameter);
    return standIn(gradient.type());
  }

  /**
   * Records that a framework has itself added a micro-batch's gradient to the original's buffer.
   */
  public void added(Weights weights) {
    requireRoom(weights.parameter());
    mark(weights.parameter());
  }

  private void requireRoom(int parameter) {
    if (added[parameter] == microBatches) {
      throw new IllegalStateException(
          parameters.get(parameter)
              + " got more gradients than a step has: "
              + microBatches
              + " micro-batches");
    }
  }

  private void mark(int parameter) {
    added[parameter]++;
    if (added[parameter] == microBatches) {
      complete.accept(parameter);
    }
  }

  /** Whether the original parameter's buffer has received a gradient in this step. */
  public boolean isAdded(int parameter) {
    return added[parameter] > 0;
  }

  /**
   * The placeholder for a gradient that has already been added: an empty buffer, always the same
   * object.
   */
  public static TypedBuffer standIn(DataType type) {
    return Tensor.empty(type).buffer();
  }

  private void accumulate(TypedBuffer from, TypedBuffer into) {
    for (long done = 0; done < into.count(); done += FloatTile.SIZE) {
      int n = (int) Math.min(FloatTile.SIZE, into.count() - done);
      long target = into.address() + done * into.type().bytes();
      sum.load(into.type(), target, n);
      more.load(from.type(), from.address() + done * from.type().bytes(), n);
      addTo(sum.values, more.values, n);
      sum.store(into.type(), target, n);
    }
  }

  private static void addTo(float[] sum, float[] more, int n) {
    for (int i = 0; i < n; i++) {
      sum[i] += more[i];
    }
  }
}
