package io.weft.collectives.arithmetic;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Compares conversions with the definition, evaluated in doubles. */
class Float8Test {
  /** The value of a code by the formula of the specification. */
  private static double value(Float8 format, int code) {
    double sign = code >>> 7 == 0 ? 1 : -1;
    int magnitude = code & 0x7f;
    int fractionBits = format == Float8.E4M3 ? 3 : 2;
    int bias = format == Float8.E4M3 ? 7 : 15;
    int exponent = magnitude >>> fractionBits;
    int fraction = magnitude & (1 << fractionBits) - 1;
    if (format == Float8.E4M3 && magnitude == 0x7f) {
      return Double.NaN;
    }
    if (format == Float8.E5M2 && exponent == 31) {
      return fraction == 0 ? sign * Double.POSITIVE_INFINITY : Double.NaN;
    }
    double scale = Math.pow(2, -fractionBits);
    return exponent == 0
        ? sign * fraction * scale * Math.pow(2, 1 - bias)
        : sign * (1 + fraction * scale) * Math.pow(2, exponent - bias);
  }

  private static int finiteCodes(Float8 format) {
    return format == Float8.E4M3 ? 0x7f : 0x7c;
  }

  @ParameterizedTest
  @EnumSource
  void everyCodeWidensExactlyAndConvertsBack(Float8 format) {
    for (int code = 0; code < 256; code++) {
      float wide = format.toFloat((byte) code);
      assertThat(Double.valueOf(wide)).isEqualTo(Double.valueOf(value(format, code)));
      if (Float.isNaN(wide)) {
        assertThat(format.toFloat(format.fromFloat(wide))).isNaN();
      } else {
        assertThat(format.fromFloat(wide)).as("code %x", code).isEqualTo((byte) code);
      }
    }
  }

  @Test
  void largest() {
    assertThat(Float8.E4M3.largest()).isEqualTo(448f);
    assertThat(Float8.E5M2.largest()).isEqualTo(57344f);
  }

  @ParameterizedTest
  @EnumSource
  void roundsToNearestEvenBetweenAllNeighbours(Float8 format) {
    for (int code = 0; code < finiteCodes(format) - 1; code++) {
      float middle = (float) ((value(format, code) + value(format, code + 1)) / 2);
      int even = code + (code & 1);
      assertThat(format.fromFloat(middle)).as("tie above %x", code).isEqualTo((byte) even);
      assertThat(format.fromFloat(Math.nextDown(middle))).isEqualTo((byte) code);
      assertThat(format.fromFloat(Math.nextUp(middle))).isEqualTo((byte) (code + 1));
      assertThat(format.fromFloat(-middle)).isEqualTo((byte) (even | 0x80));
    }
  }

  @ParameterizedTest
  @EnumSource
  void noOtherCodeIsNearer(Float8 format) {
    Random random = new Random(8);
    for (int i = 0; i < 100_000; i++) {
      float value = Float.intBitsToFloat(random.nextInt());
      if (Float.isNaN(value) || Math.abs(value) > format.largest()) {
        continue;
      }
      int code = format.fromFloat(value) & 0xff;
      double error = Math.abs(value(format, code) - value);
      for (int other : new int[] {code - 1 & 0xff, code + 1 & 0xff}) {
        double otherError = Math.abs(value(format, other) - value);
        assertThat(error <= otherError || Double.isNaN(otherError)).as("%s", value).isTrue();
      }
    }
  }

  @Test
  void tooLargeValuesBecomeNaNWithoutAnInfinity() {
    assertThat(Float8.E4M3.fromFloat(464f)).isEqualTo((byte) 0x7e);
    for (float large : new float[] {Math.nextUp(464f), 1e30f, Float.POSITIVE_INFINITY}) {
      assertThat(Float8.E4M3.fromFloat(large)).isEqualTo((byte) 0x7f);
      assertThat(Float8.E4M3.fromFloat(-large)).isEqualTo((byte) 0xff);
    }
  }

  @Test
  void tooLargeValuesBecomeInfiniteWithAnInfinity() {
    assertThat(Float8.E5M2.fromFloat(Math.nextDown(61440f))).isEqualTo((byte) 0x7b);
    for (float large : new float[] {61440f, 1e30f, Float.POSITIVE_INFINITY}) {
      assertThat(Float8.E5M2.fromFloat(large)).isEqualTo((byte) 0x7c);
      assertThat(Float8.E5M2.fromFloat(-large)).isEqualTo((byte) 0xfc);
    }
  }

  @ParameterizedTest
  @EnumSource
  void notANumberKeepsItsSign(Float8 format) {
    assertThat(format.fromFloat(Float.intBitsToFloat(0x7f800001))).isEqualTo((byte) 0x7f);
    assertThat(format.fromFloat(Float.intBitsToFloat(0xffc00000))).isEqualTo((byte) 0xff);
    assertThat(format.fromFloat(-0f)).isEqualTo((byte) 0x80);
  }
}
