package io.weft.training;

import io.weft.collectives.DataType;

/**
 * The constants of {@link Adam}. Adam computes with them as float32, so the ranges also hold for
 * their rounded values. Immutable.
 *
 * @param learningRate more than 0
 * @param beta1 of the mean of gradients, from 0 to less than 1
 * @param beta2 of the mean of their squares, from 0 to less than 1
 * @param epsilon added to the denominator, more than 0, because the rest of it is 0 if a gradient
 *     has always been 0
 * @param weightDecay decoupled from the gradient (Loshchilov and Hutter, ICLR 2019): every step
 *     subtracts this part times the learning rate from a parameter; 0 for none
 * @param moments the type of both means: FLOAT32, or BFLOAT16 for half the memory
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

  /**
   * Checks the ranges.
   *
   * @throws IllegalArgumentException naming the constant that is out of its range
   */
  public AdamOptions {
    require((float) learningRate > 0, "learning rate", learningRate);
    require(beta1 >= 0 && (float) beta1 < 1, "beta1", beta1);
    require(beta2 >= 0 && (float) beta2 < 1, "beta2", beta2);
    require((float) epsilon > 0, "epsilon", epsilon);
    require(weightDecay >= 0, "weight decay", weightDecay);
    if (moments != DataType.FLOAT32 && moments != DataType.BFLOAT16) {
      throw new IllegalArgumentException("moments are float32 or bfloat16, not " + moments);
    }
  }

  private static void require(boolean holds, String what, double value) {
    if (!holds || Float.isInfinite((float) value)) {
      throw new IllegalArgumentException(
          "a " + what + " of " + value + ", " + (float) value + " as float32, is out of range");
    }
  }

  /** A copy with another learning rate, more than 0. */
  public AdamOptions withLearningRate(double other) {
    return new AdamOptions(other, beta1, beta2, epsilon, weightDecay, moments);
  }

  /** A copy with another weight decay, 0 or more. */
  public AdamOptions withWeightDecay(double other) {
    return new AdamOptions(learningRate, beta1, beta2, epsilon, other, moments);
  }

  /** A copy whose moments are FLOAT32 or BFLOAT16. */
  public AdamOptions withMoments(DataType other) {
    return new AdamOptions(learningRate, beta1, beta2, epsilon, weightDecay, other);
  }
}
