package io.weft.transfer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.github.luben.zstd.Zstd;
import io.weft.integrity.ChecksumException;
import io.weft.wire.Compression;
import java.lang.management.BufferPoolMXBean;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.util.Arrays;
import net.jpountz.lz4.LZ4Factory;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.constraints.IntRange;
import net.jqwik.api.constraints.Size;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/** Packed bytes may say what they want: memory of exactly the promised size is written. */
class UnpackingTest {
  private static final int GUARD = 64;
  private static final byte UNTOUCHED = 77;

  @Property(tries = 300)
  void whatWasPackedComesBack(
      @ForAll("packing") Compression compression,
      @ForAll @IntRange(min = 1, max = 100_000) int bytes,
      @ForAll boolean heap)
      throws Exception {
    byte[] raw = repetitive(bytes);
    assertThat(unpacked(compression, buffer(pack(compression, raw), heap), bytes)).isEqualTo(raw);
  }

  @Provide
  Arbitrary<Compression> packing() {
    return Arbitraries.of(Compression.LZ4, Compression.ZSTD);
  }

  /** Encrypted connections hand over arrays, and a chunk each must not wait for the collector. */
  @ParameterizedTest
  @EnumSource(
      value = Compression.class,
      names = {"LZ4", "ZSTD"})
  void unpackingOfArraysLeavesNoBuffersBehind(Compression compression) throws Exception {
    ByteBuffer packed = buffer(pack(compression, repetitive(50_000)), true);
    ByteBuffer whole = ByteBuffer.allocateDirect(50_000);
    Unpacking.unpack(compression, packed, whole);
    BufferPoolMXBean buffers =
        ManagementFactory.getPlatformMXBeans(BufferPoolMXBean.class).stream()
            .filter(pool -> pool.getName().equals("direct"))
            .findFirst()
            .orElseThrow();
    long before = buffers.getCount();
    long most = 0;
    for (int i = 0; i < 500; i++) {
      Unpacking.unpack(compression, packed, whole);
      most = Math.max(most, buffers.getCount() - before);
    }
    assertThat(most).as("buffers of 500 chunks").isLessThan(20);
  }

  @ParameterizedTest
  @CsvSource({"LZ4, 999", "LZ4, 1001", "ZSTD, 999", "ZSTD, 1001", "LZ4, 1", "ZSTD, 1"})
  void aLyingLengthIsAnError(Compression compression, int promised) {
    ByteBuffer packed = buffer(pack(compression, repetitive(1000)), false);
    assertThatThrownBy(() -> unpacked(compression, packed, promised))
        .isInstanceOf(ChecksumException.class)
        .hasMessageContaining("instead of " + promised + " bytes");
  }

  @Property(tries = 1000)
  void garbageIsAnErrorOrHarmless(
      @ForAll("packing") Compression compression,
      @ForAll @Size(min = 1, max = 500) byte[] garbage,
      @ForAll @IntRange(min = 1, max = 5000) int promised) {
    assertHarmless(compression, buffer(garbage, false), promised);
  }

  @Property(tries = 1000)
  void aChangedByteIsAnErrorOrHarmless(
      @ForAll("packing") Compression compression,
      @ForAll @IntRange(max = 1 << 20) int place,
      @ForAll byte value) {
    byte[] packed = pack(compression, repetitive(3000));
    packed[place % packed.length] = value;
    assertHarmless(compression, buffer(packed, false), 3000);
  }

  private static void assertHarmless(Compression compression, ByteBuffer packed, int promised) {
    try {
      assertThat(unpacked(compression, packed, promised)).hasSize(promised);
    } catch (ChecksumException e) {
      assertThat(e).hasMessageContaining("unpack to");
    }
  }

  /** Unpacks into the middle of a buffer, and looks at what is around it. */
  private static byte[] unpacked(Compression compression, ByteBuffer packed, int bytes)
      throws ChecksumException {
    ByteBuffer all = ByteBuffer.allocateDirect(bytes + 2 * GUARD);
    for (int i = 0; i < all.capacity(); i++) {
      all.put(i, UNTOUCHED);
    }
    try {
      Unpacking.unpack(compression, packed, all.slice(GUARD, bytes));
    } finally {
      byte[] guard = new byte[GUARD];
      Arrays.fill(guard, UNTOUCHED);
      byte[] found = new byte[GUARD];
      assertThat(all.get(0, found)).isNotNull();
      assertThat(found).as("before").isEqualTo(guard);
      all.get(GUARD + bytes, found);
      assertThat(found).as("behind").isEqualTo(guard);
    }
    byte[] raw = new byte[bytes];
    all.get(GUARD, raw);
    return raw;
  }

  private static byte[] repetitive(int bytes) {
    byte[] raw = new byte[bytes];
    for (int i = 0; i < bytes; i++) {
      raw[i] = (byte) (i / 7 % 11 * i % 13);
    }
    return raw;
  }

  private static byte[] pack(Compression compression, byte[] raw) {
    return compression == Compression.LZ4
        ? LZ4Factory.fastestInstance().fastCompressor().compress(raw)
        : Zstd.compress(raw);
  }

  /** Not at position 0, as pieces of a stream are. */
  private static ByteBuffer buffer(byte[] bytes, boolean heap) {
    ByteBuffer all =
        heap ? ByteBuffer.allocate(bytes.length + 8) : ByteBuffer.allocateDirect(bytes.length + 8);
    all.position(5).put(bytes).flip();
    return all.position(5);
  }
}
