package io.weft.training;

import io.weft.collectives.DataType;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.contract.Values;
import java.nio.ByteBuffer;
import java.util.SplittableRandom;

/** Direct memory with known values. */
final class Buffers {
  private Buffers() {}

  static TypedBuffer zeros(DataType type, int count) {
    return TypedBuffer.wrap(ByteBuffer.allocateDirect(type.bytes() * count), type);
  }

  static TypedBuffer of(DataType type, double... values) {
    TypedBuffer buffer = zeros(type, values.length);
    Values.fill(buffer, i -> values[(int) i]);
    return buffer;
  }

  /** Uniform from low to high, the same for the same seed. */
  static TypedBuffer random(DataType type, int count, long seed, double low, double high) {
    SplittableRandom random = new SplittableRandom(seed);
    TypedBuffer buffer = zeros(type, count);
    Values.fill(buffer, i -> random.nextDouble(low, high));
    return buffer;
  }

  static double[] read(TypedBuffer buffer) {
    double[] values = new double[(int) buffer.count()];
    for (int i = 0; i < values.length; i++) {
      values[i] = Values.get(buffer, i);
    }
    return values;
  }
}
