package io.weft.memory;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.SplittableRandom;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;

class MemoryCopyTest {
  private final ByteBuffer buffer = ByteBuffer.allocateDirect(4 << 20);
  private final long address = Memory.addressOf(buffer);

  /** Ranges around the size at which copies are split, overlapping in both directions. */
  @Property(tries = 60)
  void copyMovesBytesAlsoBetweenOverlappingRanges(
      @ForAll @IntRange(max = 1 << 20) int from,
      @ForAll @IntRange(max = 1 << 20) int to,
      @ForAll @IntRange(max = 3 << 20) int bytes) {
    byte[] expected = new byte[buffer.capacity()];
    fill(expected, from * 31L + to);
    Memory.copyFrom(expected, Memory.BYTE_ARRAY, address, expected.length);

    Memory.copy(address + from, address + to, bytes);

    System.arraycopy(expected, from, expected, to, bytes);
    byte[] found = new byte[expected.length];
    Memory.copyTo(address, found, Memory.BYTE_ARRAY, found.length);
    assertThat(Arrays.mismatch(found, expected)).isEqualTo(-1);
  }

  /** Ranges that are copied word by word, also to and from arrays. */
  @Property(tries = 300)
  void shortCopiesMoveBytesAlsoBetweenOverlappingRanges(
      @ForAll @IntRange(max = 80) int from,
      @ForAll @IntRange(max = 80) int to,
      @ForAll @IntRange(max = 70) int bytes) {
    byte[] expected = new byte[160];
    fill(expected, from * 31L + to);
    Memory.copyFrom(expected, Memory.BYTE_ARRAY, address, expected.length);

    Memory.copy(address + from, address + to, bytes);
    Memory.copyFrom(expected, Memory.BYTE_ARRAY + from, address + 200, bytes);

    byte[] part = new byte[bytes];
    Memory.copyTo(address + 200, part, Memory.BYTE_ARRAY, bytes);
    assertThat(part).isEqualTo(Arrays.copyOfRange(expected, from, from + bytes));
    System.arraycopy(expected, from, expected, to, bytes);
    byte[] found = new byte[expected.length];
    Memory.copyTo(address, found, Memory.BYTE_ARRAY, found.length);
    assertThat(found).isEqualTo(expected);
  }

  private static void fill(byte[] bytes, long seed) {
    SplittableRandom random = new SplittableRandom(seed);
    for (int i = 0; i < bytes.length; i++) {
      bytes[i] = (byte) random.nextInt();
    }
  }
}
