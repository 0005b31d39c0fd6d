package io.weft.transfers;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.collectives.DataType;
import io.weft.tensor.codec.CodecKind;
import io.weft.transfers.Manifest.ManifestEntry;
import java.nio.ByteBuffer;
import java.util.List;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;
import net.jqwik.api.constraints.Size;
import org.junit.jupiter.api.Test;

/** Encoded manifests, valid and invalid ones. */
class ManifestTest {
  private static List<ManifestEntry> there(Manifest manifest) {
    ByteBuffer block = ByteBuffer.allocate(Manifest.BYTES);
    manifest.encode(block);
    return Manifest.decode(block);
  }

  private static ManifestEntry entry(boolean send, long key, String failure) {
    CodecKind codec = key == 7 ? CodecKind.ZSTD : CodecKind.NONE;
    return new ManifestEntry(send, key, DataType.BFLOAT16, 1L << 40, codec, failure);
  }

  @Test
  void entriesArriveAsTheyWere() {
    Manifest manifest = new Manifest();
    List<ManifestEntry> entries =
        List.of(entry(true, -1, ""), entry(false, 7, "größer als erlaubt"), entry(true, 7, ""));
    entries.forEach(entry -> assertThat(manifest.offer(entry)).isTrue());
    assertThat(there(manifest)).isEqualTo(entries).isEqualTo(manifest.entries());
  }

  /** Entries mark sends behind recorded work; a verdict is no transfer. */
  @Test
  void recordedSendsAndVerdictsArriveAsTheyWere() {
    ManifestEntry recorded =
        new ManifestEntry(
            ManifestEntry.Kind.RECORDED_SEND,
            3,
            DataType.INT8,
            5,
            CodecKind.NONE,
            "",
            TransferAttempt.NONE);
    Manifest manifest = new Manifest();
    List<ManifestEntry> entries =
        List.of(
            ManifestEntry.verdict(""),
            ManifestEntry.verdict("the device was lost"),
            recorded,
            ManifestEntry.IDLE);
    entries.forEach(entry -> assertThat(manifest.offer(entry)).isTrue());
    assertThat(there(manifest)).isEqualTo(entries);
    assertThat(entries)
        .extracting(ManifestEntry::isVerdict)
        .containsExactly(true, true, false, false);
    assertThat(recorded.matches(entry(false, 3, ""))).isFalse();
    assertThat(recorded.matches(new ManifestEntry(false, 3, DataType.INT8, 5, CodecKind.NONE, "")))
        .isTrue();
  }

  /** With the attempt, because only the newest attempt of some work may match. */
  @Test
  void withdrawalsAndAttemptsArriveAsTheyWere() {
    TransferAttempt second = new TransferAttempt(3, 1);
    ManifestEntry send =
        new ManifestEntry(ManifestEntry.Kind.SEND, 7, DataType.INT8, 5, CodecKind.ZSTD, "", second);
    List<ManifestEntry> entries =
        List.of(
            send,
            ManifestEntry.withdrawal(send, 0, "the task was killed"),
            ManifestEntry.withdrawal(entry(false, 8, ""), 1L << 40, "the reader is gone"));
    Manifest manifest = new Manifest();
    entries.forEach(entry -> assertThat(manifest.offer(entry)).isTrue());
    assertThat(there(manifest)).isEqualTo(entries);
    assertThat(entries).extracting(ManifestEntry::isWithdrawal).containsExactly(false, true, true);
    assertThat(entries).extracting(ManifestEntry::isVerdict).containsOnly(false);
  }

  @Test
  void anotherVersionIsRefused() {
    ByteBuffer block = ByteBuffer.allocate(Manifest.BYTES);
    new Manifest().encode(block);
    block.put(4, (byte) 2);
    assertThatThrownBy(() -> Manifest.decode(block)).hasMessageContaining("version 2");
  }

  @Test
  void aFullBlockTakesNoMoreAndLongTextsAreCut() {
    Manifest manifest = new Manifest();
    assertThat(manifest.offer(entry(true, 0, "é".repeat(5000)))).isTrue();
    int more = 0;
    while (manifest.offer(entry(false, more, ""))) {
      more++;
    }
    List<ManifestEntry> arrived = there(manifest);
    assertThat(arrived).hasSize(1 + more);
    assertThat(more).isGreaterThan(200);
    assertThat(arrived.get(0).failure()).endsWith("…").hasSizeBetween(400, 600);
  }

  @Test
  void onlyTheOtherEndOfTheSameTransferMatches() {
    ManifestEntry send = entry(true, 1, "");
    assertThat(send.matches(entry(false, 1, "any failure"))).isTrue();
    assertThat(send.matches(entry(true, 1, ""))).isFalse();
    assertThat(send.matches(entry(false, 2, ""))).isFalse();
    assertThat(send.matches(ManifestEntry.plain(false, 1, DataType.INT16, 1L << 40, ""))).isFalse();
    assertThat(send.matches(ManifestEntry.plain(false, 1, DataType.BFLOAT16, 3, ""))).isFalse();
    ManifestEntry coded =
        new ManifestEntry(false, 1, DataType.BFLOAT16, 1L << 40, CodecKind.ZSTD, "");
    assertThat(send.matches(coded)).isFalse();
  }

  @Property(tries = 500)
  void anyBytesAreAManifestOrRefused(
      @ForAll @Size(64) byte[] bytes, @ForAll @IntRange(min = 0, max = 400) int entries) {
    ByteBuffer block = ByteBuffer.allocate(Manifest.BYTES);
    new Manifest().encode(block);
    block.put(6, (byte) entries).put(7, (byte) (entries >> 8)).position(8);
    block.put(bytes);
    try {
      assertThat(Manifest.decode(block)).hasSize(entries);
    } catch (IllegalArgumentException e) {
      assertThat(e).hasMessageContaining("manifest");
    }
  }

  @Property(tries = 500)
  void aDamagedManifestIsRefusedOrStillWellFormed(
      @ForAll @IntRange(min = 0, max = 80) int at, @ForAll byte value) {
    Manifest manifest = new Manifest();
    assertThat(manifest.offer(entry(true, 1, "a failure"))).isTrue();
    assertThat(manifest.offer(entry(false, 2, ""))).isTrue();
    ByteBuffer block = ByteBuffer.allocate(Manifest.BYTES);
    manifest.encode(block);
    block.put(at, value);
    try {
      assertThat(Manifest.decode(block)).hasSizeLessThan(400);
    } catch (IllegalArgumentException e) {
      assertThat(e).hasMessageContaining("manifest");
    }
  }

  @Test
  void otherBytesAreNoManifest() {
    assertThatThrownBy(() -> Manifest.decode(ByteBuffer.allocate(Manifest.BYTES)))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("the peer's message is not a manifest of transfers");
    assertThatThrownBy(() -> Manifest.decode(ByteBuffer.allocate(3)))
        .isInstanceOf(IllegalArgumentException.class);
  }
}
