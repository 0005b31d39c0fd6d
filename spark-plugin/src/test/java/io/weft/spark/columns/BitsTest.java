package io.weft.spark.columns;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.BitSet;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;
import net.jqwik.api.constraints.Size;
import net.jqwik.api.lifecycle.AfterTry;
import net.jqwik.api.lifecycle.BeforeTry;
import org.apache.spark.unsafe.Platform;

/** Bitmaps behave like {@link BitSet} at any position. */
class BitsTest {
  private static final int BYTES = 64;

  private long target;
  private long source;

  @BeforeTry
  void allocate() {
    target = Platform.allocateMemory(BYTES);
    source = Platform.allocateMemory(BYTES);
    Platform.setMemory(target, (byte) 0xa5, BYTES);
  }

  @AfterTry
  void free() {
    Platform.freeMemory(target);
    Platform.freeMemory(source);
  }

  private BitSet bits(int count) {
    BitSet set = new BitSet();
    for (int i = 0; i < count; i++) {
      set.set(i, Bits.get(target, i));
    }
    return set;
  }

  @Property(tries = 300)
  void appendsBytes(
      @ForAll @IntRange(max = 70) int position,
      @ForAll @Size(max = 100) boolean[] values,
      @ForAll boolean flip) {
    byte[] bytes = new byte[values.length];
    BitSet expected = bits(position);
    for (int i = 0; i < values.length; i++) {
      bytes[i] = (byte) (values[i] ? 1 : 0);
      expected.set(position + i, values[i] ^ flip);
    }
    Bits.append(target, position, bytes, 0, bytes.length, flip ? 1 : 0);
    assertThat(bits(position + values.length)).isEqualTo(expected);
  }

  @Property(tries = 300)
  void appendsBits(
      @ForAll @IntRange(max = 70) int position,
      @ForAll @IntRange(max = 70) int from,
      @ForAll @Size(max = 100) boolean[] values) {
    BitSet expected = bits(position);
    for (int i = 0; i < values.length; i++) {
      Bits.append(source, from + i, values[i]);
      expected.set(position + i, values[i]);
    }
    Bits.append(target, position, source, from, values.length);
    assertThat(bits(position + values.length)).isEqualTo(expected);
    assertThat(Bits.zeros(source, from, values.length))
        .isEqualTo(values.length - expected.get(position, position + 200).cardinality());
  }

  @Property(tries = 200)
  void appendsOnes(
      @ForAll @IntRange(max = 70) int position, @ForAll @IntRange(max = 200) int count) {
    BitSet expected = bits(position);
    expected.set(position, position + count);
    Bits.appendOnes(target, position, count);
    assertThat(bits(position + count)).isEqualTo(expected);
    assertThat(Bits.zeros(target, position, count)).isZero();
  }
}
