package io.weft.shuffle.store;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.shuffle.store.MapOutputFormat.CorruptIndexException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.zip.CRC32C;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.constraints.IntRange;
import net.jqwik.api.constraints.Size;
import org.junit.jupiter.api.Test;

class MapOutputFormatTest {
  @Property(tries = 300)
  void everyOutputRoundTrips(@ForAll("outputs") MapOutput output) throws Exception {
    MapOutput decoded = MapOutputFormat.decode(MapOutputFormat.encode(output), output.key());
    assertThat(decoded.key()).isEqualTo(output.key());
    assertThat(decoded.segmentBytes()).isEqualTo(output.segmentBytes());
    assertThat(decoded.partitions()).isEqualTo(output.partitions());
    assertThat(decoded.chunks()).isEqualTo(output.chunks());
    for (int partition = 0; partition <= output.partitions(); partition++) {
      assertThat(decoded.firstChunk(partition)).isEqualTo(output.firstChunk(partition));
    }
    for (int chunk = 0; chunk < output.chunks(); chunk++) {
      assertThat(decoded.segment(chunk)).isEqualTo(output.segment(chunk));
      assertThat(decoded.offset(chunk)).isEqualTo(output.offset(chunk));
      assertThat(decoded.length(chunk)).isEqualTo(output.length(chunk));
      assertThat(decoded.isEncrypted(chunk)).isEqualTo(output.isEncrypted(chunk));
      assertThat(decoded.rows(chunk)).isEqualTo(output.rows(chunk));
      assertThat(decoded.checksum(chunk)).isEqualTo(output.checksum(chunk));
    }
  }

  @Property(tries = 300)
  void everyChangedByteIsNoticed(
      @ForAll("outputs") MapOutput output,
      @ForAll @IntRange(max = 1 << 20) int place,
      @ForAll @IntRange(min = 1, max = 255) int flip) {
    ByteBuffer bytes = MapOutputFormat.encode(output);
    int at = place % bytes.limit();
    bytes.put(at, (byte) (bytes.get(at) ^ flip));
    assertCorrupt(bytes, output.key());
  }

  @Property(tries = 300)
  void everyCutIsNoticed(
      @ForAll("outputs") MapOutput output, @ForAll @IntRange(max = 1 << 20) int cut) {
    ByteBuffer bytes = MapOutputFormat.encode(output);
    bytes.limit(cut % bytes.limit());
    assertCorrupt(bytes, output.key());
  }

  @Property(tries = 300)
  void garbageIsNoticed(@ForAll @Size(max = 400) byte[] garbage) {
    assertCorrupt(ByteBuffer.wrap(garbage), new BlockKey(1, 2));
  }

  /** With a correct checksum over wrong numbers, only the field checks can detect the damage. */
  @Property(tries = 500)
  void wrongNumbersUnderARightChecksumAreNoticedOrHarmless(
      @ForAll("outputs") MapOutput output,
      @ForAll @IntRange(min = 6, max = 1 << 20) int place,
      @ForAll int value) {
    ByteBuffer bytes = MapOutputFormat.encode(output);
    bytes.putInt(place % (bytes.limit() / 4) * 4, value);
    setChecksum(bytes);
    try {
      MapOutput decoded = MapOutputFormat.decode(bytes, output.key());
      assertThat(decoded.bytes(0, decoded.partitions())).isNotNegative();
    } catch (CorruptIndexException e) {
      assertThat(e).hasMessageContaining("index of " + output.key());
    }
  }

  @Test
  void countsFromTheHeaderAllocateNothing() {
    ByteBuffer bytes = MapOutputFormat.encode(empty(3));
    bytes.putInt(32, Integer.MAX_VALUE).putInt(36, Integer.MAX_VALUE);
    setChecksum(bytes);
    assertCorrupt(bytes, new BlockKey(1, 2));
  }

  @Test
  void anotherVersionIsNamed() {
    ByteBuffer bytes = MapOutputFormat.encode(empty(3));
    bytes.putInt(4, 9);
    assertThatThrownBy(() -> MapOutputFormat.decode(bytes, new BlockKey(1, 2)))
        .isInstanceOf(CorruptIndexException.class)
        .hasMessageContaining("reads version 4, it has: 9");
  }

  @Test
  void theIndexOfAnotherOutputIsRefused() {
    ByteBuffer bytes = MapOutputFormat.encode(empty(3));
    assertThatThrownBy(() -> MapOutputFormat.decode(bytes, new BlockKey(1, 3)))
        .isInstanceOf(CorruptIndexException.class)
        .hasMessageContaining("index of shuffle 1 map 3: it describes shuffle 1 map 2");
  }

  private static MapOutput empty(int partitions) {
    return new MapOutput(
        new BlockKey(1, 2),
        4096,
        new int[partitions + 1],
        new int[0],
        new int[0],
        new int[0],
        new long[0],
        new long[0]);
  }

  private static void setChecksum(ByteBuffer bytes) {
    CRC32C crc = new CRC32C();
    crc.update(bytes.duplicate().position(12));
    bytes.order(ByteOrder.LITTLE_ENDIAN).putInt(8, (int) crc.getValue());
  }

  private static void assertCorrupt(ByteBuffer bytes, BlockKey key) {
    assertThatThrownBy(() -> MapOutputFormat.decode(bytes, key))
        .isInstanceOf(CorruptIndexException.class);
  }

  @Provide
  Arbitrary<MapOutput> outputs() {
    Arbitrary<int[]> counts = Arbitraries.integers().between(0, 3).array(int[].class).ofMaxSize(40);
    return Combinators.combine(
            Arbitraries.integers(), Arbitraries.longs(), counts, Arbitraries.randoms())
        .as(
            (shuffle, map, perPartition, random) -> {
              int[] first = new int[perPartition.length + 1];
              for (int p = 0; p < perPartition.length; p++) {
                first[p + 1] = first[p] + perPartition[p];
              }
              int chunks = first[perPartition.length];
              int[] segment = random.ints(chunks, 0, 1000).toArray();
              int[] rows = random.ints(chunks, 0, Integer.MAX_VALUE).toArray();
              int[] checksum = random.ints(chunks).toArray();
              long[] offset = random.longs(chunks, 0, 1 << 20).map(n -> n * 64).toArray();
              long[] length =
                  random
                      .longs(chunks, 1, 1 << 30)
                      .map(bytes -> random.nextBoolean() ? bytes | MapOutput.ENCRYPTED : bytes)
                      .toArray();
              BlockKey key = new BlockKey(shuffle, map);
              return new MapOutput(key, 64 << 20, first, segment, rows, checksum, offset, length);
            });
  }
}
