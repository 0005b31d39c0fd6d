package io.weft.training;

import io.weft.collectives.arithmetic.BFloat16;
import io.weft.collectives.buffer.DataType;
import io.weft.collectives.buffer.TypedBuffer;
import io.weft.memory.Memory;

/** One row of logits, or of their gradient, as float32. Not thread-safe. */
final class LogitRow {
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
