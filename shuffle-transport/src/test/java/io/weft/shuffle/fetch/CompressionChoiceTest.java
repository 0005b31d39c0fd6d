package io.weft.shuffle.fetch;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import io.weft.memory.Memory;
import io.weft.shuffle.fetch.CompressionChoice.LinkRate;
import io.weft.shuffle.fetch.CompressionChoice.Trial;
import io.weft.shuffle.net.Compression;
import java.nio.ByteBuffer;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The choice of a codec by measured rates. */
class CompressionChoiceTest {
  private static final int SHUFFLE = 7;
  private static final int MIB = 1 << 20;

  /** 100 Mbit/s: no machine compresses slower than this network sends. */
  private static final long SLOW_NANOS_PER_BYTE = 80;

  private final CompressionChoice choice = new CompressionChoice(Compression.Rule.AUTO);

  private void link(long nanosPerByte) {
    choice.link().begin(0);
    choice.link().end(8 * MIB, 8L * MIB * nanosPerByte);
  }

  private void arrived(ByteBuffer chunk) {
    choice.arrived(SHUFFLE, Memory.addressOf(chunk), chunk.capacity());
  }

  /** Rows with a counter, a number of few values and zeros, as those of most tables. */
  private static ByteBuffer rows(int bytes) {
    ByteBuffer rows = ByteBuffer.allocateDirect(bytes);
    for (int at = 0; at + 24 <= bytes; at += 24) {
      rows.putLong(at, at / 24).putLong(at + 8, at / 24 % 50);
    }
    return rows;
  }

  @ParameterizedTest
  @ValueSource(ints = {16 << 10, 100_001, 3 * MIB})
  void aSlowNetworkMakesCompressibleShufflesCompressed(int bytes) {
    link(SLOW_NANOS_PER_BYTE);
    assertThat(choice.of(SHUFFLE)).as("without a trial").isEqualTo(Compression.NONE);
    arrived(rows(bytes));
    assertThat(choice.of(SHUFFLE)).isNotEqualTo(Compression.NONE);
    assertThat(choice.of(SHUFFLE + 1)).as("another shuffle").isEqualTo(Compression.NONE);
    choice.removeShuffle(SHUFFLE);
    assertThat(choice.of(SHUFFLE)).as("removed").isEqualTo(Compression.NONE);
  }

  @Test
  void aFasterNetworkEndsTheCompression() {
    link(SLOW_NANOS_PER_BYTE);
    arrived(rows(MIB));
    assertThat(choice.of(SHUFFLE)).isNotEqualTo(Compression.NONE);
    for (int i = 0; i < 200; i++) {
      choice.link().begin(0);
      choice.link().end(8 * MIB, 1000);
    }
    assertThat(choice.of(SHUFFLE)).isEqualTo(Compression.NONE);
  }

  @Test
  void aFastOrUnknownNetworkCostsNoTrial() {
    arrived(rows(MIB));
    choice.link().begin(0);
    choice.link().end(8 * MIB, 1000);
    arrived(rows(MIB));
    link(100 * SLOW_NANOS_PER_BYTE);
    assertThat(choice.of(SHUFFLE)).isEqualTo(Compression.NONE);
  }

  @Test
  void bytesThatDoNotShrinkStayPlain() {
    link(SLOW_NANOS_PER_BYTE);
    byte[] random = new byte[MIB];
    new Random(1).nextBytes(random);
    arrived(ByteBuffer.allocateDirect(MIB).put(random));
    assertThat(choice.of(SHUFFLE)).isEqualTo(Compression.NONE);
  }

  @Test
  void chunksThatAreTooShortAreNoSample() {
    link(SLOW_NANOS_PER_BYTE);
    arrived(rows((16 << 10) - 1));
    assertThat(choice.of(SHUFFLE)).isEqualTo(Compression.NONE);
    arrived(rows(16 << 10));
    assertThat(choice.of(SHUFFLE)).isNotEqualTo(Compression.NONE);
  }

  @Test
  void theFixedRulesAlwaysHold() {
    assertThat(new CompressionChoice(Compression.Rule.NONE).of(SHUFFLE))
        .isEqualTo(Compression.NONE);
    assertThat(new CompressionChoice(Compression.Rule.LZ4).of(SHUFFLE)).isEqualTo(Compression.LZ4);
    assertThat(new CompressionChoice(Compression.Rule.ZSTD).of(SHUFFLE))
        .isEqualTo(Compression.ZSTD);
  }

  @Test
  void aTrialSumsTheNetworkAndTheProcessor() {
    Trial trial = new Trial(Compression.LZ4, 0.5, 2);
    assertThat(trial.nanosPerByte(8)).isEqualTo(6);
    assertThat(trial).hasToString("50 % of the bytes are left after 2.00 ns a byte");
  }

  /** Two streams share the network: the time in which both run counts once. */
  @Test
  void theRateIsThatOfAllStreamsTogether() {
    LinkRate rate = new LinkRate();
    rate.begin(1000);
    rate.begin(2000);
    rate.end(4 * MIB, 4000);
    assertThat(rate.nanosPerByte()).isCloseTo(3000.0 / (4 * MIB), within(1e-9));
    rate.end(4 * MIB, 5000);
    rate.begin(1_000_000);
    rate.end(8 * MIB, 1_004_000);
    assertThat(rate.nanosPerByte())
        .as("without the pause")
        .isCloseTo(8000.0 / (16 * MIB), within(1e-9));
  }

  @Test
  void fewBytesSayNothing() {
    LinkRate rate = new LinkRate();
    rate.begin(0);
    rate.end(4 * MIB - 1, 1_000_000);
    assertThat(rate.nanosPerByte()).isZero();
  }
}
