package io.weft.training;

import io.weft.collectives.DataType;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.arithmetic.BFloat16;
import io.weft.memory.Memory;

/**
 * The loss of a classifier: softmax and cross-entropy in one step, without storing the
 * probabilities.
 *
 * <p>The loss of a row is {@code logSumExp(logits) - logits[label]}. Its gradient is {@code
 * softmax(logits) - oneHot(label)} times the upstream gradient, divided by the number of counted
 * rows if the reduction is a mean. Rows with the ignored label have loss zero and gradient zero and
 * are not counted; the mean of no rows is zero. The maximum is subtracted before exponents are
 * computed, so large logits do not overflow (Blanchard, Higham and Higham, IMA Journal of Numerical
 * Analysis 2021).
 *
 * <p>Logits may be bfloat16. They are widened to float32, sums are float64, and every element of
 * the gradient is rounded once, after all multiplications. Immutable and thread-safe; a {@link
 * Pass} is for one thread.
 *
 * @param reduction of the rows' losses
 * @param ignoredLabel label of rows without a loss; a value outside the classes, or below zero for
 *     none
 */
public record SoftmaxCrossEntropy(LossReduction reduction, long ignoredLabel) {
  /** The mean over rows whose label is not -100, as in PyTorch. */
  public static final SoftmaxCrossEntropy MEAN = new SoftmaxCrossEntropy(LossReduction.MEAN, -100);

  /**
   * Computes the losses.
   *
   * @param logits rows times classes, FLOAT32 or BFLOAT16, row by row; must not change before
   *     {@link Pass#backward}
   * @param classes in a row, 1 or more
   * @param labels one for each row, INT32 or INT64, from 0 to classes - 1 or the ignored one
   * @throws IllegalArgumentException if sizes or types do not fit, or naming the row whose label is
   *     out of range
   */
  public Pass forward(TypedBuffer logits, int classes, TypedBuffer labels) {
    requireFloats("logits", logits);
    if (labels.type() != DataType.INT32 && labels.type() != DataType.INT64) {
      throw new IllegalArgumentException("labels are int32 or int64, not " + labels.type());
    }
    if (classes < 1 || logits.count() != labels.count() * classes) {
      throw new IllegalArgumentException(
          logits.count()
              + " logits are not "
              + labels.count()
              + " rows of "
              + classes
              + " classes");
    }
    Pass pass = new Pass(this, logits, classes, labels);
    pass.run();
    return pass;
  }

  private static void requireFloats(String what, TypedBuffer buffer) {
    if (buffer.type() != DataType.FLOAT32 && buffer.type() != DataType.BFLOAT16) {
      throw new IllegalArgumentException(what + " are float32 or bfloat16, not " + buffer.type());
    }
  }

  /** The losses of one batch, and their backward pass. */
  public static final class Pass {
    private final SoftmaxCrossEntropy settings;
    private final TypedBuffer logits;
    private final int classes;
    private final long ignoredLabel;
    private final int[] labels;
    private final float[] losses;

    /** For each row, log(sum(exp(logits))); enough to compute the softmax again. */
    private final double[] logSums;

    private final LogitRow row;
    private int counted;
    private double sum;
    private boolean overwritten;

    private Pass(
        SoftmaxCrossEntropy settings, TypedBuffer logits, int classes, TypedBuffer labels) {
      this.settings = settings;
      this.logits = logits;
      this.classes = classes;
      this.ignoredLabel = settings.ignoredLabel();
      int rows = Math.toIntExact(labels.count());
      this.labels = new int[rows];
      this.losses = new float[rows];
      this.logSums = new double[rows];
      this.row = new LogitRow(classes);
      for (int i = 0; i < rows; i++) {
        this.labels[i] = label(labels, i);
      }
    }

    /** The class, or -1 if the row is ignored. */
    private int label(TypedBuffer all, int index) {
      long label =
          all.type() == DataType.INT32
              ? Memory.getInt(all.address() + 4L * index)
              : Memory.getLong(all.address() + 8L * index);
      if (label == ignoredLabel) {
        return -1;
      }
      if (label < 0 || label >= classes) {
        throw new IllegalArgumentException(
            "row "
                + index
                + " has label "
                + label
                + "; there are classes 0 to "
                + (classes - 1)
                + " and the ignored label "
                + ignoredLabel);
      }
      return (int) label;
    }

    private void run() {
      for (int i = 0; i < labels.length; i++) {
        if (labels[i] >= 0) {
          row.load(logits, i);
          logSums[i] = row.logSumExp();
          double loss = logSums[i] - row.value(labels[i]);
          losses[i] = (float) loss;
          sum += loss;
          counted++;
        }
      }
    }

    /** The rows of the batch, including ignored ones. */
    public int rows() {
      return labels.length;
    }

    /** The rows whose label is not the ignored one. */
    public int countedRows() {
      return counted;
    }

    /** The loss of one row, before any reduction. */
    public float rowLoss(int index) {
      return losses[index];
    }

    /**
     * The loss of the batch.
     *
     * @throws IllegalStateException if the reduction is NONE: then each row has its own loss
     */
    public double loss() {
      return switch (settings.reduction()) {
        case SUM -> sum;
        case MEAN -> counted == 0 ? 0 : sum / counted;
        case NONE -> throw new IllegalStateException("without reduction every row has a loss");
      };
    }

    /**
     * Writes the gradient with respect to the logits.
     *
     * @param upstream the gradient with respect to {@link #loss}; without reduction, of every row's
     *     loss
     * @param gradient as many elements as logits, FLOAT32 or BFLOAT16; may be the logits
     *     themselves, which are then replaced, and this pass is over
     */
    public void backward(double upstream, TypedBuffer gradient, GradientWrite write) {
      begin(gradient, write);
      double scale = upstream * divisor();
      for (int i = 0; i < labels.length; i++) {
        writeRow(i, scale, gradient, write);
      }
    }

    /**
     * Writes the gradient as {@link #backward(double, TypedBuffer, GradientWrite)} does, with one
     * upstream gradient for each row.
     *
     * @param upstream FLOAT32, one for each row
     * @throws IllegalStateException if there is a reduction: then there is one loss
     */
    public void backward(TypedBuffer upstream, TypedBuffer gradient, GradientWrite write) {
      if (settings.reduction() != LossReduction.NONE) {
        throw new IllegalStateException(
            "with reduction " + settings.reduction() + " there is one upstream gradient");
      }
      if (upstream.type() != DataType.FLOAT32 || upstream.count() != labels.length) {
        throw new IllegalArgumentException(
            upstream + " are not " + labels.length + " float32, one for each row");
      }
      begin(gradient, write);
      for (int i = 0; i < labels.length; i++) {
        writeRow(i, Memory.getFloat(upstream.address() + 4L * i), gradient, write);
      }
    }

    /** Only a mean divides, and only by the number of counted rows. */
    private double divisor() {
      return settings.reduction() == LossReduction.MEAN && counted > 0 ? 1.0 / counted : 1;
    }

    private void begin(TypedBuffer gradient, GradientWrite write) {
      requireFloats("gradients", gradient);
      if (gradient.count() != logits.count()) {
        throw new IllegalArgumentException(
            gradient.count() + " gradients for " + logits.count() + " logits");
      }
      if (overwritten) {
        throw new IllegalStateException(
            "the gradient was written over the logits, so there is no second one");
      }
      if (gradient.overlaps(logits)) {
        if (!gradient.sameAs(logits) || write == GradientWrite.ACCUMULATE) {
          throw new IllegalArgumentException(
              "a gradient in the memory of the logits must cover them exactly; this is "
                  + gradient
                  + " to "
                  + write
                  + " over "
                  + logits);
        }
        overwritten = true;
      }
    }

    private void writeRow(int index, double scale, TypedBuffer gradient, GradientWrite write) {
      if (labels[index] < 0) {
        if (write == GradientWrite.REPLACE) {
          row.clear(gradient, index);
        }
        return;
      }
      row.load(logits, index);
      row.toGradient(labels[index], logSums[index], scale);
      if (write == GradientWrite.ACCUMULATE) {
        row.add(gradient, index);
      }
      row.store(gradient, index);
    }
  }

  /** One row of logits, or of their gradient, as float32. Not thread-safe. */
  static final class LogitRow {
    private final int classes;
    private final float[] values;

    LogitRow(int classes) {
      this.classes = classes;
      this.values = new float[classes];
    }

    float value(int index) {
      return values[index];
    }

    void load(TypedBuffer from, long row) {
      long address = address(from, row);
      if (from.type() == DataType.FLOAT32) {
        Memory.copyTo(address, values, Memory.FLOAT_ARRAY, 4L * classes);
        return;
      }
      for (int i = 0; i < classes; i++) {
        values[i] = BFloat16.toFloat(Memory.getShort(address + 2L * i));
      }
    }

    void store(TypedBuffer to, long row) {
      long address = address(to, row);
      if (to.type() == DataType.FLOAT32) {
        Memory.copyFrom(values, Memory.FLOAT_ARRAY, address, 4L * classes);
        return;
      }
      for (int i = 0; i < classes; i++) {
        Memory.putShort(address + 2L * i, BFloat16.fromFloat(values[i]));
      }
    }

    void clear(TypedBuffer to, long row) {
      Memory.setMemory(address(to, row), (long) classes * to.type().bytes(), (byte) 0);
    }

    /** Adds a row of the same width to this one. */
    void add(TypedBuffer other, long row) {
      long address = address(other, row);
      boolean wide = other.type() == DataType.FLOAT32;
      for (int i = 0; i < classes; i++) {
        values[i] +=
            wide
                ? Memory.getFloat(address + 4L * i)
                : BFloat16.toFloat(Memory.getShort(address + 2L * i));
      }
    }

    double logSumExp() {
      float max = Float.NEGATIVE_INFINITY;
      for (int i = 0; i < classes; i++) {
        max = Math.max(max, values[i]);
      }
      double sum = 0;
      for (int i = 0; i < classes; i++) {
        sum += Math.exp(values[i] - max);
      }
      return max + Math.log(sum);
    }

    /** Turns logits into the gradient of the row's loss times a factor. */
    void toGradient(int label, double logSum, double scale) {
      for (int i = 0; i < classes; i++) {
        double probability = Math.exp(values[i] - logSum);
        values[i] = (float) ((i == label ? probability - 1 : probability) * scale);
      }
    }

    private long address(TypedBuffer buffer, long row) {
      return buffer.address() + row * classes * buffer.type().bytes();
    }
  }
}
