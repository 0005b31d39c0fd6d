package io.weft.tensor.codec;

import static org.assertj.core.api.Assertions.assertThat;

import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;

/** The error bounds of the codecs, for random floats of all kinds and for similar floats. */
class ErrorBoundsTest {
  private static final double LEAST = 0x1p-150;

  @Provide
  Arbitrary<float[]> tensors() {
    Arbitrary<Float> any = Arbitraries.integers().map(Float::intBitsToFloat);
    Arbitrary<Float> subnormal = Arbitraries.integers().between(0, 1 << 23).map(this::float32);
    Arbitrary<Float> near = Arbitraries.floats().between(-2f, 2f);
    Arbitrary<Float> special =
        Arbitraries.of(0f, -0f, Float.NaN, Float.POSITIVE_INFINITY, Float.NEGATIVE_INFINITY);
    return Arbitraries.oneOf(
        any.array(float[].class).ofMaxSize(200),
        subnormal.array(float[].class).ofMaxSize(50),
        near.array(float[].class).ofMaxSize(1000),
        Arbitraries.oneOf(near, special, subnormal).array(float[].class).ofMaxSize(100));
  }

  private float float32(int bits) {
    return Float.intBitsToFloat(bits);
  }

  @Property(tries = 300)
  void bfloat16(@ForAll("tensors") float[] values) {
    float[] decoded = Encodings.roundTrip(CodecKind.BFLOAT16, values);
    for (int i = 0; i < values.length; i++) {
      if (Math.abs(values[i]) >= 0x1.ffp127f) {
        assertThat(decoded[i]).isEqualTo(Math.copySign(Float.POSITIVE_INFINITY, values[i]));
      } else {
        check(values[i], decoded[i], Math.abs((double) values[i]) / 256 + 0x1p-134);
      }
    }
  }

  @Property(tries = 300)
  void e4m3(@ForAll("tensors") float[] values) {
    float[] decoded = Encodings.roundTrip(CodecKind.FLOAT8_E4M3, values);
    double amax = amax(values);
    for (int i = 0; i < values.length; i++) {
      if (Float.isInfinite(values[i])) {
        assertThat(decoded[i]).isNaN();
      } else {
        double bound = Math.max(Math.abs((double) values[i]) / 16, amax * 0x1p-17) + LEAST;
        check(values[i], decoded[i], bound);
      }
    }
  }

  @Property(tries = 300)
  void e5m2(@ForAll("tensors") float[] values) {
    float[] decoded = Encodings.roundTrip(CodecKind.FLOAT8_E5M2, values);
    double amax = amax(values);
    for (int i = 0; i < values.length; i++) {
      if (Float.isInfinite(values[i])) {
        assertThat(decoded[i]).isEqualTo(values[i]);
      } else {
        double bound = Math.max(Math.abs((double) values[i]) / 8, amax * 0x1p-31) + LEAST;
        check(values[i], decoded[i], bound);
      }
    }
  }

  @Property(tries = 100)
  void lossless(@ForAll("tensors") float[] values) {
    for (CodecKind kind : new CodecKind[] {CodecKind.NONE, CodecKind.ZSTD}) {
      assertThat(Encodings.roundTrip(kind, values)).isEqualTo(values);
    }
  }

  private static double amax(float[] values) {
    double most = 0;
    for (float value : values) {
      if (Float.isFinite(value)) {
        most = Math.max(most, Math.abs(value));
      }
    }
    return most;
  }

  private static void check(float value, float decoded, double bound) {
    if (Float.isNaN(value)) {
      assertThat(decoded).isNaN();
    } else {
      assertThat(decoded).isFinite();
      assertThat(Math.abs((double) value - decoded))
          .as("%s was decoded as %s", value, decoded)
          .isLessThanOrEqualTo(bound);
      assertThat(Math.copySign(1f, decoded)).isEqualTo(Math.copySign(1f, value));
    }
  }
}
