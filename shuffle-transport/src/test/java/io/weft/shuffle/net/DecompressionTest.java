package io.weft.shuffle.net;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.github.luben.zstd.Zstd;
import io.weft.shuffle.store.Checksum.ChecksumException;
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

/** Damaged compressed bytes never write outside memory of the expected size. */
class DecompressionTest {
  private static final int GUARD = 64;
  private static final byte UNTOUCHED = 77;

  @Property(tries = 300)
  void compressedBytesRoundTrip(
      @ForAll("codecs") Compression compression,
      @ForAll @IntRange(min = 1, max = 100_000) int bytes,
      @ForAll boolean heap)
      throws Exception {
    byte[] raw = repetitive(bytes);
    assertThat(decompressed(compression, buffer(compressed(compression, raw), heap), bytes))
        .isEqualTo(raw);
  }

  @Provide
  Arbitrary<Compression> codecs() {
    return Arbitraries.of(Compression.LZ4, Compression.ZSTD);
  }

  /**
   * Encrypted connections deliver arrays. Copies of them must not pile up until a garbage
   * collection.
   */
  @ParameterizedTest
  @EnumSource(
      value = Compression.class,
      names = {"LZ4", "ZSTD"})
  void decompressingArraysLeaksNoBuffers(Compression compression) throws Exception {
    ByteBuffer input = buffer(compressed(compression, repetitive(50_000)), true);
    ByteBuffer whole = ByteBuffer.allocateDirect(50_000);
    compression.decompressWhole(input, whole);
    BufferPoolMXBean buffers =
        ManagementFactory.getPlatformMXBeans(BufferPoolMXBean.class).stream()
            .filter(pool -> pool.getName().equals("direct"))
            .findFirst()
            .orElseThrow();
    long before = buffers.getCount();
    long most = 0;
    for (int i = 0; i < 500; i++) {
      compression.decompressWhole(input, whole);
      most = Math.max(most, buffers.getCount() - before);
    }
    assertThat(most).as("buffers of 500 chunks").isLessThan(20);
  }

  @ParameterizedTest
  @CsvSource({"LZ4, 999", "LZ4, 1001", "ZSTD, 999", "ZSTD, 1001", "LZ4, 1", "ZSTD, 1"})
  void aWrongLengthIsAnError(Compression compression, int promised) {
    ByteBuffer input = buffer(compressed(compression, repetitive(1000)), false);
    assertThatThrownBy(() -> decompressed(compression, input, promised))
        .isInstanceOf(ChecksumException.class)
        .hasMessageContaining("instead of " + promised + " bytes");
  }

  @Property(tries = 1000)
  void garbageIsAnErrorOrHarmless(
      @ForAll("codecs") Compression compression,
      @ForAll @Size(min = 1, max = 500) byte[] garbage,
      @ForAll @IntRange(min = 1, max = 5000) int promised) {
    assertHarmless(compression, buffer(garbage, false), promised);
  }

  @Property(tries = 1000)
  void aChangedByteIsAnErrorOrHarmless(
      @ForAll("codecs") Compression compression,
      @ForAll @IntRange(max = 1 << 20) int place,
      @ForAll byte value) {
    byte[] input = compressed(compression, repetitive(3000));
    input[place % input.length] = value;
    assertHarmless(compression, buffer(input, false), 3000);
  }

  private static void assertHarmless(Compression compression, ByteBuffer input, int promised) {
    try {
      assertThat(decompressed(compression, input, promised)).hasSize(promised);
    } catch (ChecksumException e) {
      assertThat(e).hasMessageContaining("decompress to");
    }
  }

  /** Decompresses into the middle of a buffer and checks the bytes around it. */
  private static byte[] decompressed(Compression compression, ByteBuffer input, int bytes)
      throws ChecksumException {
    ByteBuffer all = ByteBuffer.allocateDirect(bytes + 2 * GUARD);
    for (int i = 0; i < all.capacity(); i++) {
      all.put(i, UNTOUCHED);
    }
    try {
      compression.decompressWhole(input, all.slice(GUARD, bytes));
    } finally {
      byte[] guard = new byte[GUARD];
      Arrays.fill(guard, UNTOUCHED);
      byte[] found = new byte[GUARD];
      assertThat(all.get(0, found)).isNotNull();
      assertThat(found).as("before").isEqualTo(guard);
      all.get(GUARD + bytes, found);
      assertThat(found).as("after").isEqualTo(guard);
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

  private static byte[] compressed(Compression compression, byte[] raw) {
    return compression == Compression.LZ4
        ? LZ4Factory.fastestInstance().fastCompressor().compress(raw)
        : Zstd.compress(raw);
  }

  /** A buffer that starts at position 5, as a piece of a stream may. */
  private static ByteBuffer buffer(byte[] bytes, boolean heap) {
    ByteBuffer all =
        heap ? ByteBuffer.allocate(bytes.length + 8) : ByteBuffer.allocateDirect(bytes.length + 8);
    all.position(5).put(bytes).flip();
    return all.position(5);
  }
}
