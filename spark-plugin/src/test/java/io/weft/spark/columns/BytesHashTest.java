package io.weft.spark.columns;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.apache.spark.unsafe.Platform;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Bytes that differ in two places, which a weak step would let cancel. */
class BytesHashTest {
  private static final int NUMBERS = 100_000;

  /** Two numbers of three and two digits, in words that follow each other in the hash. */
  @ParameterizedTest
  @ValueSource(ints = {31, 32, 64})
  void twoNumbersInATextDoNotCancel(int length) {
    for (int first = 0; first < 8; first++) {
      byte[] text = "x".repeat(length).getBytes(StandardCharsets.US_ASCII);
      long[] hashes = new long[NUMBERS];
      for (int number = 0; number < NUMBERS; number++) {
        putDigits(text, first, 3, number % 1000);
        putDigits(text, first + 20, 2, number / 1000);
        hashes[number] = of(text);
      }
      assertThat(Arrays.stream(hashes).distinct().count()).as("from %d", first).isEqualTo(NUMBERS);
    }
  }

  private static void putDigits(byte[] text, int at, int digits, int number) {
    int left = number;
    for (int i = at + digits - 1; i >= at; i--, left /= 10) {
      text[i] = (byte) ('0' + left % 10);
    }
  }

  @Test
  void twoBitsDoNotCancel() {
    for (int length = 1; length <= 64; length++) {
      byte[] bytes = new byte[length];
      long expected = of(bytes);
      for (int one = 0; one < Byte.SIZE * length; one++) {
        flip(bytes, one);
        for (int other = 0; other < one; other++) {
          flip(bytes, other);
          if (of(bytes) == expected) {
            throw new AssertionError("bits %d and %d of %d".formatted(one, other, length));
          }
          flip(bytes, other);
        }
        flip(bytes, one);
      }
    }
  }

  private static void flip(byte[] bytes, int bit) {
    bytes[bit / Byte.SIZE] ^= (byte) (1 << bit % Byte.SIZE);
  }

  private static long of(byte[] bytes) {
    return BytesHash.of(bytes, Platform.BYTE_ARRAY_OFFSET, bytes.length);
  }
}
