package io.weft.collectives.arithmetic;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Random;
import org.junit.jupiter.api.Test;

/** Compares conversions with the definition, evaluated in doubles. */
class HalfFloatTest {
  /** The value of a code by the formula of the standard. */
  private static double value(int bits, int exponentBits, int fractionBits) {
    double sign = bits >>> 15 == 0 ? 1 : -1;
    int exponent = bits >>> fractionBits & (1 << exponentBits) - 1;
    int fraction = bits & (1 << fractionBits) - 1;
    int bias = (1 << exponentBits - 1) - 1;
    double scale = Math.pow(2, -fractionBits);
    if (exponent == (1 << exponentBits) - 1) {
      return fraction == 0 ? sign * Double.POSITIVE_INFINITY : Double.NaN;
    }
    return exponent == 0
        ? sign * fraction * scale * Math.pow(2, 1 - bias)
        : sign * (1 + fraction * scale) * Math.pow(2, exponent - bias);
  }

  @Test
  void everyFloat16WidensExactlyAndConvertsBack() {
    for (int bits = 0; bits < 1 << 16; bits++) {
      float wide = Float16.toFloat((short) bits);
      assertThat(Double.valueOf(wide)).isEqualTo(Double.valueOf(value(bits, 5, 10)));
      if (!Float.isNaN(wide)) {
        assertThat(Float16.fromFloat(wide)).isEqualTo((short) bits);
      } else {
        assertThat(Float.isNaN(Float16.toFloat(Float16.fromFloat(wide)))).isTrue();
      }
    }
  }

  @Test
  void everyBFloat16WidensExactlyAndConvertsBack() {
    for (int bits = 0; bits < 1 << 16; bits++) {
      float wide = BFloat16.toFloat((short) bits);
      assertThat(Double.valueOf(wide)).isEqualTo(Double.valueOf(value(bits, 8, 7)));
      if (!Float.isNaN(wide)) {
        assertThat(BFloat16.fromFloat(wide)).isEqualTo((short) bits);
      } else {
        assertThat(Float.isNaN(BFloat16.toFloat(BFloat16.fromFloat(wide)))).isTrue();
      }
    }
  }

  @Test
  void float16RoundsToNearestEvenBetweenAllNeighbours() {
    for (int bits = 0; bits < 0x7bff; bits++) {
      double low = value(bits, 5, 10);
      double high = value(bits + 1, 5, 10);
      float middle = (float) ((low + high) / 2);
      int even = bits + (bits & 1);
      assertThat(Float16.fromFloat(middle)).as("tie above %x", bits).isEqualTo((short) even);
      assertThat(Float16.fromFloat(Math.nextDown(middle))).isEqualTo((short) bits);
      assertThat(Float16.fromFloat(Math.nextUp(middle))).isEqualTo((short) (bits + 1));
      assertThat(Float16.fromFloat(-middle)).isEqualTo((short) (even | 0x8000));
    }
  }

  @Test
  void bfloat16RoundsToNearestEvenBetweenAllNeighbours() {
    for (int bits = 0; bits < 0x7f7f; bits++) {
      float middle = Float.intBitsToFloat(bits << 16 | 0x8000);
      int even = bits + (bits & 1);
      assertThat(BFloat16.fromFloat(middle)).as("tie above %x", bits).isEqualTo((short) even);
      assertThat(BFloat16.fromFloat(Math.nextDown(middle))).isEqualTo((short) bits);
      assertThat(BFloat16.fromFloat(Math.nextUp(middle))).isEqualTo((short) (bits + 1));
    }
  }

  @Test
  void tooLargeValuesBecomeInfinite() {
    assertThat(Float16.fromFloat(65519.996f)).isEqualTo((short) 0x7bff);
    assertThat(Float16.fromFloat(65520f)).isEqualTo((short) 0x7c00);
    assertThat(Float16.fromFloat(-1e30f)).isEqualTo((short) 0xfc00);
    assertThat(BFloat16.fromFloat(Float.MAX_VALUE)).isEqualTo((short) 0x7f80);
    assertThat(BFloat16.fromFloat(Float.NEGATIVE_INFINITY)).isEqualTo((short) 0xff80);
  }

  @Test
  void roundingNeverMovesAwayFromTheNearest() {
    Random random = new Random(5);
    for (int i = 0; i < 200_000; i++) {
      float value = Float.intBitsToFloat(random.nextInt());
      if (Float.isNaN(value) || Math.abs(value) >= 65504) {
        continue;
      }
      short rounded = Float16.fromFloat(value);
      double error = Math.abs(value(rounded & 0xffff, 5, 10) - value);
      for (int neighbour : new int[] {rounded - 1, rounded + 1}) {
        double other = Math.abs(value(neighbour & 0xffff, 5, 10) - value);
        assertThat(error <= other || Double.isNaN(other)).as("%s", value).isTrue();
      }
    }
  }
}
