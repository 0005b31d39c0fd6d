package io.weft.training;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import io.weft.collectives.DataType;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.arithmetic.BFloat16;
import io.weft.training.SoftmaxCrossEntropy.Pass;
import java.util.function.ToDoubleFunction;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Compares gradients with difference quotients of an unfused float64 reference. */
class SoftmaxCrossEntropyTest {
  private static final int ROWS = 6;
  private static final int CLASSES = 5;
  private static final long IGNORED = -100;
  private static final double STEP = 1e-5;

  /** Two of six are ignored. */
  private static final long[] LABELS = {0, IGNORED, 4, 2, IGNORED, 2};

  private static final float[] WEIGHTS = {0.5f, 7, -1.25f, 0, 3, 1};

  private static TypedBuffer logits(DataType type) {
    return Buffers.random(type, ROWS * CLASSES, 11, -3, 3);
  }

  private static TypedBuffer labels(long... labels) {
    double[] values = new double[labels.length];
    for (int i = 0; i < labels.length; i++) {
      values[i] = labels[i];
    }
    return Buffers.of(DataType.INT64, values);
  }

  private static TypedBuffer zeros() {
    return Buffers.zeros(DataType.FLOAT32, ROWS * CLASSES);
  }

  private static Pass pass(LossReduction reduction, TypedBuffer logits) {
    return new SoftmaxCrossEntropy(reduction, IGNORED).forward(logits, CLASSES, labels(LABELS));
  }

  /** The losses of all rows by the definition. */
  private static double[] rowLosses(double[] logits) {
    double[] losses = new double[ROWS];
    for (int row = 0; row < ROWS; row++) {
      if (LABELS[row] != IGNORED) {
        double sum = 0;
        for (int i = 0; i < CLASSES; i++) {
          sum += Math.exp(logits[row * CLASSES + i]);
        }
        losses[row] = -Math.log(Math.exp(logits[row * CLASSES + (int) LABELS[row]]) / sum);
      }
    }
    return losses;
  }

  private static double sum(double[] logits) {
    double sum = 0;
    for (double loss : rowLosses(logits)) {
      sum += loss;
    }
    return sum;
  }

  private static double mean(double[] logits) {
    return sum(logits) / 4;
  }

  private static double[] differences(TypedBuffer logits, ToDoubleFunction<double[]> function) {
    double[] at = Buffers.read(logits);
    double[] slopes = new double[at.length];
    for (int i = 0; i < at.length; i++) {
      double here = at[i];
      at[i] = here + STEP;
      double above = function.applyAsDouble(at);
      at[i] = here - STEP;
      slopes[i] = (above - function.applyAsDouble(at)) / (2 * STEP);
      at[i] = here;
    }
    return slopes;
  }

  private static void assertClose(TypedBuffer actual, double[] expected, double tolerance) {
    double[] values = Buffers.read(actual);
    for (int i = 0; i < values.length; i++) {
      assertThat(values[i])
          .as("element %d", i)
          .isCloseTo(expected[i], within(tolerance * Math.max(1, Math.abs(expected[i]))));
    }
  }

  @Test
  void lossesAreThoseOfTheDefinition() {
    TypedBuffer logits = logits(DataType.FLOAT32);
    double[] at = Buffers.read(logits);
    assertThat(pass(LossReduction.SUM, logits).loss()).isCloseTo(sum(at), within(1e-6));
    assertThat(pass(LossReduction.MEAN, logits).loss()).isCloseTo(mean(at), within(1e-6));
    Pass rows = pass(LossReduction.NONE, logits);
    double[] expected = rowLosses(at);
    for (int row = 0; row < ROWS; row++) {
      assertThat((double) rows.rowLoss(row)).isCloseTo(expected[row], within(1e-6));
    }
    assertThatThrownBy(rows::loss).isInstanceOf(IllegalStateException.class);
  }

  @Test
  void theMeanIsDividedByTheRowsThatAreNotIgnored() {
    TypedBuffer logits = logits(DataType.FLOAT32);
    Pass mean = pass(LossReduction.MEAN, logits);
    assertThat(mean.rows()).isEqualTo(6);
    assertThat(mean.countedRows()).isEqualTo(4);
    assertThat(mean.loss()).isCloseTo(pass(LossReduction.SUM, logits).loss() / 4, within(1e-12));
  }

  @ParameterizedTest
  @CsvSource({"SUM, 1", "SUM, -2.5", "MEAN, 1", "MEAN, 3", "MEAN, 0"})
  void theGradientIsRightForEveryReductionAndUpstreamGradient(
      LossReduction reduction, double upstream) {
    TypedBuffer logits = logits(DataType.FLOAT32);
    TypedBuffer gradient = zeros();
    pass(reduction, logits).backward(upstream, gradient, GradientWrite.REPLACE);
    double[] expected =
        differences(logits, at -> upstream * (reduction == LossReduction.SUM ? sum(at) : mean(at)));
    assertClose(gradient, expected, 1e-6);
  }

  /** An upstream gradient other than one reveals a wrong divisor or a dropped factor. */
  @ParameterizedTest
  @EnumSource(
      value = LossReduction.class,
      names = {"SUM", "MEAN"})
  void theGradientOfTheSquareOfTheLossIsRight(LossReduction reduction) {
    TypedBuffer logits = logits(DataType.FLOAT32);
    TypedBuffer gradient = zeros();
    Pass pass = pass(reduction, logits);
    pass.backward(2 * pass.loss(), gradient, GradientWrite.REPLACE);
    ToDoubleFunction<double[]> loss =
        reduction == LossReduction.SUM
            ? SoftmaxCrossEntropyTest::sum
            : SoftmaxCrossEntropyTest::mean;
    double[] expected = differences(logits, at -> loss.applyAsDouble(at) * loss.applyAsDouble(at));
    assertClose(gradient, expected, 1e-5);
  }

  @Test
  void withoutReductionNothingIsDividedAndEveryRowHasItsUpstreamGradient() {
    TypedBuffer logits = logits(DataType.FLOAT32);
    TypedBuffer gradient = zeros();
    TypedBuffer upstream = Buffers.of(DataType.FLOAT32, 0.5, 7, -1.25, 0, 3, 1);
    pass(LossReduction.NONE, logits).backward(upstream, gradient, GradientWrite.REPLACE);
    double[] expected =
        differences(
            logits,
            at -> {
              double[] losses = rowLosses(at);
              double weighted = 0;
              for (int row = 0; row < ROWS; row++) {
                weighted += WEIGHTS[row] * losses[row];
              }
              return weighted;
            });
    assertClose(gradient, expected, 1e-6);
  }

  @Test
  void theSumOfSquaredRowLossesHasTheRightGradient() {
    TypedBuffer logits = logits(DataType.FLOAT32);
    TypedBuffer gradient = zeros();
    Pass pass = pass(LossReduction.NONE, logits);
    double[] twice = new double[ROWS];
    for (int row = 0; row < ROWS; row++) {
      twice[row] = 2 * pass.rowLoss(row);
    }
    pass.backward(Buffers.of(DataType.FLOAT32, twice), gradient, GradientWrite.REPLACE);
    double[] expected =
        differences(
            logits,
            at -> {
              double squares = 0;
              for (double loss : rowLosses(at)) {
                squares += loss * loss;
              }
              return squares;
            });
    assertClose(gradient, expected, 1e-5);
  }

  @Test
  void oneUpstreamGradientForAllRowsIsThatOfTheirSum() {
    TypedBuffer logits = logits(DataType.FLOAT32);
    TypedBuffer rows = zeros();
    TypedBuffer summed = zeros();
    pass(LossReduction.NONE, logits).backward(1.5, rows, GradientWrite.REPLACE);
    pass(LossReduction.SUM, logits).backward(1.5, summed, GradientWrite.REPLACE);
    assertThat(Buffers.read(rows)).isEqualTo(Buffers.read(summed));
  }

  @Test
  void rowsWithTheIgnoredLabelGetZerosAndLeaveAnAccumulatedGradientAlone() {
    TypedBuffer logits = logits(DataType.FLOAT32);
    TypedBuffer gradient = Buffers.random(DataType.FLOAT32, ROWS * CLASSES, 5, 1, 2);
    double[] before = Buffers.read(gradient);
    TypedBuffer fresh = zeros();
    Pass pass = pass(LossReduction.SUM, logits);
    pass.backward(1, gradient, GradientWrite.ACCUMULATE);
    pass.backward(1, fresh, GradientWrite.REPLACE);
    double[] added = Buffers.read(fresh);
    for (int i = 0; i < before.length; i++) {
      before[i] += added[i];
    }
    assertClose(gradient, before, 1e-6);
    pass.backward(1, gradient, GradientWrite.REPLACE);
    assertThat(Buffers.read(gradient)).isEqualTo(added);
    assertThat(Buffers.read(gradient.slice(CLASSES, CLASSES))).containsOnly(0);
  }

  @Test
  void aBatchOfIgnoredRowsOnlyHasNoLossAndNoGradient() {
    TypedBuffer logits = Buffers.random(DataType.FLOAT32, 2 * CLASSES, 3, -1, 1);
    TypedBuffer gradient = Buffers.random(DataType.FLOAT32, 2 * CLASSES, 4, 1, 2);
    Pass pass = SoftmaxCrossEntropy.MEAN.forward(logits, CLASSES, labels(IGNORED, IGNORED));
    assertThat(pass.loss()).isZero();
    pass.backward(1, gradient, GradientWrite.REPLACE);
    assertThat(Buffers.read(gradient)).containsOnly(0);
  }

  @ParameterizedTest
  @ValueSource(strings = {"FLOAT32", "BFLOAT16"})
  void theGradientMayOverwriteTheLogits(DataType type) {
    TypedBuffer logits = logits(type);
    TypedBuffer apart = Buffers.zeros(type, ROWS * CLASSES);
    pass(LossReduction.MEAN, logits).backward(3, apart, GradientWrite.REPLACE);
    pass(LossReduction.MEAN, logits).backward(3, logits, GradientWrite.REPLACE);
    assertThat(Buffers.read(logits)).isEqualTo(Buffers.read(apart));
  }

  /** The state for the backward pass must not use memory that may be reused. */
  @Test
  void logitsThatWereOverwrittenAreNotReadAgain() {
    TypedBuffer logits = logits(DataType.FLOAT32);
    Pass pass = pass(LossReduction.MEAN, logits);
    pass.backward(1, logits, GradientWrite.REPLACE);
    assertThatThrownBy(() -> pass.backward(1, zeros(), GradientWrite.REPLACE))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("over the logits");
  }

  @Test
  void aGradientHalfOverTheLogitsIsRefused() {
    TypedBuffer both = Buffers.zeros(DataType.FLOAT32, ROWS * CLASSES + 1);
    TypedBuffer logits = both.slice(0, ROWS * CLASSES);
    TypedBuffer shifted = both.slice(1, ROWS * CLASSES);
    assertThatThrownBy(
            () -> pass(LossReduction.SUM, logits).backward(1, shifted, GradientWrite.REPLACE))
        .isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(
            () -> pass(LossReduction.SUM, logits).backward(1, logits, GradientWrite.ACCUMULATE))
        .isInstanceOf(IllegalArgumentException.class);
  }

  /** Scaling an already rounded gradient would round twice. */
  @Test
  void bfloat16GradientsAreRoundedOnceAndSumsAreNotInBfloat16() {
    TypedBuffer logits = logits(DataType.BFLOAT16);
    TypedBuffer halves = Buffers.zeros(DataType.BFLOAT16, ROWS * CLASSES);
    TypedBuffer floats = zeros();
    Pass pass = pass(LossReduction.MEAN, logits);
    pass.backward(0.3, halves, GradientWrite.REPLACE);
    pass.backward(0.3, floats, GradientWrite.REPLACE);
    assertThat(pass.loss()).isCloseTo(mean(Buffers.read(logits)), within(1e-6));
    double[] exact = Buffers.read(floats);
    double[] rounded = Buffers.read(halves);
    for (int i = 0; i < exact.length; i++) {
      float once = BFloat16.toFloat(BFloat16.fromFloat((float) exact[i]));
      assertThat((float) rounded[i]).isEqualTo(once);
    }
  }

  @Test
  void manySmallTermsAreNotLostInBfloat16Logits() {
    int classes = 50_000;
    TypedBuffer logits = Buffers.zeros(DataType.BFLOAT16, classes);
    Pass pass = SoftmaxCrossEntropy.MEAN.forward(logits, classes, labels(7));
    assertThat(pass.loss()).isCloseTo(Math.log(classes), within(1e-6));
  }

  @Test
  void largeLogitsDoNotOverflow() {
    TypedBuffer logits = Buffers.of(DataType.FLOAT32, 1e30, -1e30, 0, 0, 0);
    TypedBuffer gradient = Buffers.zeros(DataType.FLOAT32, CLASSES);
    Pass pass = SoftmaxCrossEntropy.MEAN.forward(logits, CLASSES, labels(0));
    assertThat(pass.loss()).isZero();
    pass.backward(1, gradient, GradientWrite.REPLACE);
    assertThat(Buffers.read(gradient)).containsOnly(0);
  }

  @Test
  void aLabelOutOfRangeIsNamedWithItsRow() {
    TypedBuffer logits = Buffers.zeros(DataType.FLOAT32, 2 * CLASSES);
    assertThatThrownBy(() -> SoftmaxCrossEntropy.MEAN.forward(logits, CLASSES, labels(0, 5)))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("row 1 has label 5");
    TypedBuffer ints = Buffers.of(DataType.INT32, 0, -1);
    assertThatThrownBy(() -> SoftmaxCrossEntropy.MEAN.forward(logits, CLASSES, ints))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("row 1 has label -1");
  }

  @Test
  void sizesMustMatch() {
    TypedBuffer logits = logits(DataType.FLOAT32);
    assertThatThrownBy(() -> SoftmaxCrossEntropy.MEAN.forward(logits, CLASSES, labels(0, 1)))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("30 logits are not 2 rows of 5");
    assertThatThrownBy(
            () ->
                pass(LossReduction.MEAN, logits)
                    .backward(
                        Buffers.zeros(DataType.FLOAT32, ROWS), zeros(), GradientWrite.REPLACE))
        .isInstanceOf(IllegalStateException.class);
  }
}
