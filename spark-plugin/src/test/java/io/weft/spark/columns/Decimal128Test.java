package io.weft.spark.columns;

import static org.assertj.core.api.Assertions.assertThat;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.Arrays;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.constraints.IntRange;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.unsafe.Platform;

class Decimal128Test {
  private static final BigInteger END = BigInteger.TEN.pow(38);

  private final byte[] bytes = new byte[16];

  /** Values near powers of two and ten, where the number of bytes or the form changes. */
  @Provide
  Arbitrary<BigInteger> values() {
    Arbitrary<BigInteger> any =
        Arbitraries.bigIntegers()
            .between(END.negate().add(BigInteger.ONE), END.subtract(BigInteger.ONE));
    Arbitrary<BigInteger> powersOfTwo =
        Arbitraries.integers().between(0, 126).map(BigInteger.ONE::shiftLeft);
    Arbitrary<BigInteger> powersOfTen =
        Arbitraries.integers().between(0, 37).map(BigInteger.TEN::pow);
    Arbitrary<BigInteger> near =
        Arbitraries.oneOf(powersOfTwo, powersOfTen)
            .flatMap(
                power ->
                    Arbitraries.integers()
                        .between(-2, 2)
                        .map(step -> power.add(BigInteger.valueOf(step))));
    return Arbitraries.oneOf(any, near, near.map(BigInteger::negate));
  }

  @Property
  void readsWhatItWrote(@ForAll("values") BigInteger value) {
    Decimal128.put(value.toByteArray(), bytes, Platform.BYTE_ARRAY_OFFSET);
    Decimal read = Decimal128.get(bytes, Platform.BYTE_ARRAY_OFFSET, 38, 6);
    Decimal expected = Decimal.apply(new BigDecimal(value, 6), 38, 6);
    assertThat(read).isEqualTo(expected).hasSameHashCodeAs(expected);
    assertThat(read.toJavaBigDecimal()).isEqualTo(new BigDecimal(value, 6));
    assertThat(read.precision()).isEqualTo(38);
    assertThat(read.scale()).isEqualTo(6);
    if (value.bitLength() < Long.SIZE) {
      assertThat(read.toUnscaledLong()).isEqualTo(value.longValueExact());
    }
  }

  @Property
  void theShortestFormIsThatOfJava(@ForAll("values") BigInteger value) {
    Decimal128.put(value.toByteArray(), bytes, Platform.BYTE_ARRAY_OFFSET);
    byte[] shortest = new byte[16];
    Arrays.fill(shortest, (byte) 7);
    int length =
        Decimal128.shortest(
            bytes, Platform.BYTE_ARRAY_OFFSET, shortest, Platform.BYTE_ARRAY_OFFSET);
    assertThat(length).isEqualTo(value.toByteArray().length);
    assertThat(shortest).isEqualTo(Arrays.copyOf(value.toByteArray(), 16));
  }

  /** Parquet extends the sign to a fixed length. */
  @Property
  void leadingBytesOfTheSignDoNotCount(
      @ForAll("values") BigInteger value, @ForAll @IntRange(max = 20) int more) {
    byte[] shortest = value.toByteArray();
    byte[] extended = new byte[more + shortest.length];
    Arrays.fill(extended, (byte) (value.signum() < 0 ? -1 : 0));
    System.arraycopy(shortest, 0, extended, more, shortest.length);
    byte[] expected = new byte[16];
    Decimal128.put(shortest, expected, Platform.BYTE_ARRAY_OFFSET);
    Decimal128.put(extended, bytes, Platform.BYTE_ARRAY_OFFSET);
    assertThat(bytes).isEqualTo(expected);
  }
}
