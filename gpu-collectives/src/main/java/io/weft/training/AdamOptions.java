package io.weft.training;

import io.weft.collectives.buffer.DataType;

/**
 * The constants of {@link Adam}.
 *
 * @param learningRate more than 0
 * @param beta1 of the mean of gradients, from 0 to less than 1
 * @param beta2 of the mean of their squares, from 0 to less than 1
 * @param epsilon added to the denominator, more than 0
 * @param weightDecay decoupled from the gradient (Loshchilov and Hutter, ICLR 2019): every step
 *     takes this part times the learning rate off a parameter; 0 for none
 * @param moments how both means are kept: FLOAT32, or BFLOAT16 for half the memory
 */
public record AdamOptions(
    double learningRate,
    double beta1,
    double beta2,
    double epsilon,
    double weightDecay,
    DataType moments) {
  /** The constants of the paper, no weight decay, moments in bfloat16. */
  public static final AdamOptions DEFAULT =
      new AdamOptions(1e-3, 0.9, 0.999, 1e-8, 0, DataType.BFLOAT16);

  public AdamOptions {
    require(learningRate > 0, "learning rate", learningRate);
    require(beta1 >= 0 && beta1 < 1, "beta1", beta1);
    require(beta2 >= 0 && beta2 < 1, "beta2", beta2);
    require(epsilon > 0, "epsilon", epsilon);
    require(weightDecay >= 0, "weight decay", weightDecay);
    if (moments != DataType.FLOAT32 && moments != DataType.BFLOAT16) {
      throw new IllegalArgumentException("moments are float32 or bfloat16, not " + moments);
    }
  }

  private static void require(boolean holds, String what, double value) {
    if (!holds || Double.isInfinite(value)) {
      throw new IllegalArgumentException("a " + what + " of " + value + " is out of range");
    }
  }

  public AdamOptions withLearningRate(double other) {
    return new AdamOptions(other, beta1, beta2, epsilon, weightDecay, moments);
  }

  public AdamOptions withWeightDecay(double other) {
    return new AdamOptions(learningRate, beta1, beta2, epsilon, other, moments);
  }

  public AdamOptions withMoments(DataType other) {
    return new AdamOptions(learningRate, beta1, beta2, epsilon, weightDecay, other);
  }
}
