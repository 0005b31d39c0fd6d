package io.weft.shuffle;

import static io.weft.support.TestBlocks.expected;
import static io.weft.support.TestBlocks.readAll;
import static io.weft.support.TestBlocks.request;
import static io.weft.support.TestBlocks.write;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.memory.ArenaFullException;
import io.weft.memory.ArenaOptions.PrivateMemory;
import io.weft.memory.Extent;
import io.weft.memory.Memory;
import io.weft.memory.SpillPolicy.Use;
import io.weft.shuffle.ExchangeOptions.DiskEncryption;
import io.weft.shuffle.ExchangeOptions.TrafficOptions;
import io.weft.shuffle.fetch.BlockFetchException;
import io.weft.shuffle.fetch.BlockRequest;
import io.weft.shuffle.fetch.ChunkReader;
import io.weft.shuffle.fetch.FetchListener;
import io.weft.shuffle.net.Compression;
import io.weft.shuffle.peer.ExchangeCounter;
import io.weft.shuffle.peer.TransportMode;
import io.weft.shuffle.store.BlockKey;
import io.weft.shuffle.store.ChunkEncryptor.EncryptedChunkFormat;
import io.weft.shuffle.store.EncryptionKey;
import io.weft.shuffle.store.IncomingOutput;
import io.weft.shuffle.store.MapOutputWriter;
import io.weft.support.DamagedDisk;
import io.weft.support.TestBlocks.Sizes;
import io.weft.support.TestCluster;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Encrypted blocks on disk: secrecy, detection of damage, and memory use. */
class EncryptedSpillTest {
  private static final BlockKey KEY = new BlockKey(1, 0);
  private static final String MARKER = "a marker in plain text";
  private static final int CHUNK = 100_000;
  private static final int ENCRYPTED_CHUNK = (int) EncryptedChunkFormat.encryptedBytes(CHUNK);
  private static final Sizes SIZES = (map, partition, chunk) -> chunk < 2 ? CHUNK : 0;
  private static final Sizes ONE_CHUNK = (map, partition, chunk) -> chunk < 1 ? CHUNK : 0;

  @TempDir Path folder;

  private TestCluster cluster;

  @BeforeEach
  void open() throws IOException {
    cluster = new TestCluster(folder);
  }

  @AfterEach
  void close() throws IOException {
    cluster.close();
  }

  private static List<BlockRequest> requests() {
    return List.of(request("owner", KEY, 0, 1, 2 * CHUNK));
  }

  /** Writes one chunk of markers. */
  private static void writeMarkers(ExecutorExchange owner) throws IOException {
    byte[] text = MARKER.repeat(CHUNK / MARKER.length()).getBytes(StandardCharsets.US_ASCII);
    try (MapOutputWriter writer = owner.newMapOutput(KEY, 1)) {
      Extent chunk = writer.allocate(text.length);
      Memory.copyFrom(text, Memory.BYTE_ARRAY, chunk.address(), text.length);
      writer.commit(0, chunk, text.length, 1);
      writer.publish();
    }
  }

  private boolean isMarkerInFiles() throws IOException {
    try (Stream<Path> files = Files.walk(folder)) {
      List<Path> all = files.filter(Files::isRegularFile).toList();
      assertThat(all.stream().mapToLong(file -> file.toFile().length()).sum()).isPositive();
      return all.stream().anyMatch(EncryptedSpillTest::hasMarker);
    }
  }

  private static boolean hasMarker(Path file) {
    try {
      return new String(Files.readAllBytes(file), StandardCharsets.ISO_8859_1).contains(MARKER);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** All folders of this test are on a disk, even the one in place of shared memory. */
  @Test
  void withoutEncryptionFilesHavePlainText() throws IOException {
    writeMarkers(cluster.open("owner"));
    assertThat(isMarkerInFiles()).isTrue();
  }

  @ParameterizedTest
  @EnumSource(TransportMode.class)
  void withEncryptionFilesHaveNoPlainTextEvenDuringReadsAndMigration(TransportMode mode)
      throws Exception {
    ExecutorExchange owner = cluster.encrypted().mode(mode).open("owner");
    writeMarkers(owner);
    assertThat(isMarkerInFiles()).isFalse();
    assertThat(owner.statistics().get(ExchangeCounter.BYTES_SPILLED)).isGreaterThan(CHUNK);
    ExecutorExchange heir = cluster.open("heir");
    try (ChunkReader reader = heir.read(requests(), FetchListener.NONE)) {
      assertThat(reader.next()).isTrue();
      byte[] start = new byte[MARKER.length()];
      Memory.copyTo(reader.address(), start, Memory.BYTE_ARRAY, start.length);
      assertThat(new String(start, StandardCharsets.US_ASCII)).isEqualTo(MARKER);
      assertThat(reader.length()).isEqualTo(CHUNK / MARKER.length() * MARKER.length());
      assertThat(isMarkerInFiles()).isFalse();
    }
    ByteBuffer stream = owner.outgoing(KEY).nioByteBuffer();
    assertThat(StandardCharsets.ISO_8859_1.decode(stream.duplicate()).toString())
        .as("the migrated bytes")
        .doesNotContain(MARKER);
    try (IncomingOutput incoming = heir.incoming(KEY)) {
      incoming.append(stream);
      incoming.finish();
    }
    assertThat(isMarkerInFiles()).isFalse();
    try (ChunkReader reader =
        heir.read(List.of(request("heir", KEY, 0, 1, CHUNK)), FetchListener.NONE)) {
      assertThat(reader.next()).as("the receiver decrypts the chunk under its name").isTrue();
    }
  }

  @Test
  void anExecutorReportsThatItHasNoSharedMemory() throws IOException {
    assertThat(cluster.open("plain").remark())
        .hasValueSatisfying(
            remark ->
                assertThat(remark)
                    .startsWith("Blocks go to a disk because " + cluster.root())
                    .contains("Set memoryFolder to a folder of a memory file system"));
    ExecutorExchange executor = cluster.encrypted().open("encrypted");
    assertThat(executor.remark())
        .hasValueSatisfying(
            remark ->
                assertThat(remark)
                    .contains("all encrypted in Spark's local folders")
                    .contains(cluster.root() + " is not in memory"));
    assertThat(executor.isInMemory()).isFalse();
  }

  private ExecutorExchange owner(TransportMode mode, boolean checksums) throws IOException {
    return owner(mode, checksums, SIZES);
  }

  private ExecutorExchange owner(TransportMode mode, boolean checksums, Sizes sizes)
      throws IOException {
    cluster
        .encrypted()
        .mode(mode)
        .traffic(new TrafficOptions(checksums, Compression.Rule.LZ4, 1 << 20, 64 << 20, 32 << 20));
    ExecutorExchange owner = cluster.open("owner");
    write(owner, KEY, 1, sizes);
    return owner;
  }

  private static void assertUnreadable(ExecutorExchange reader, String why) {
    assertThatThrownBy(() -> readAll(reader, requests()))
        .isInstanceOf(BlockFetchException.class)
        .hasMessageContaining("cannot read shuffle 1 map 0 partitions [0, 1) of executor owner")
        .hasMessageContaining(why);
    TestCluster.assertNothingHeld(reader);
  }

  @ParameterizedTest
  @EnumSource(TransportMode.class)
  void damageOnDiskIsNoticedWithoutChecksumsToo(TransportMode mode) throws IOException {
    owner(mode, false);
    ExecutorExchange reader = cluster.open("reader");
    assertThat(readAll(reader, requests())).isEqualTo(expected(1, 0, 1, 0, 1, SIZES));
    DamagedDisk.damage(cluster.local(), CHUNK / 2);
    assertUnreadable(reader, "piece 0 of 2 of the encrypted chunk is damaged");
    assertThat(reader.statistics().get(ExchangeCounter.CHECKSUM_FAILURES)).isPositive();
  }

  @Test
  void damageIsNoticedByItsOwnerAndNotMigrated() throws IOException {
    ExecutorExchange owner = owner(TransportMode.AUTO, true);
    DamagedDisk.damage(cluster.local(), CHUNK / 2);
    assertThatThrownBy(() -> readAll(owner, requests()))
        .hasMessageContaining("chunk 0 (partition 0), on disk: its bytes have CRC32C");
    assertThatThrownBy(() -> owner.outgoing(KEY))
        .hasMessageMatching("chunk 0 of shuffle 1 map 0, on disk: .* CRC32C .*");
  }

  @ParameterizedTest
  @EnumSource(TransportMode.class)
  void withAnotherKeyNothingIsReadAndTheReasonIsNamed(TransportMode mode) throws IOException {
    owner(mode, true);
    byte[] other = new byte[16];
    other[0] = 1;
    PrivateMemory memory = new PrivateMemory(64 << 20, 4, Duration.ZERO);
    cluster.encryption(new DiskEncryption(new EncryptionKey(other), memory));
    assertUnreadable(cluster.open("reader"), "encrypted with another key than this executor has");
  }

  @ParameterizedTest
  @EnumSource(TransportMode.class)
  void withoutAKeyNothingIsReadAndTheReasonIsNamed(TransportMode mode) throws IOException {
    owner(mode, true);
    cluster.unencrypted();
    assertUnreadable(cluster.open("reader"), "this executor has no key");
  }

  /** Writes and reads 20 MB with 1 MiB of transient private memory. */
  @ParameterizedTest
  @EnumSource(TransportMode.class)
  void manyBytesAreWrittenAndReadWithLittleMemory(TransportMode mode) throws IOException {
    cluster.mode(mode).window(CHUNK, 1 << 20).encryption(32, 2 * TestCluster.SEGMENT_BYTES);
    ExecutorExchange owner = cluster.open("owner");
    for (long map = 0; map < 10; map++) {
      write(owner, new BlockKey(1, map), 10, SIZES);
    }
    ExecutorExchange reader = cluster.open("reader");
    for (ExecutorExchange each : List.of(owner, reader)) {
      assertThat(readAll(each, manyRequests()))
          .containsExactlyInAnyOrderElementsOf(expected(1, 0, 10, 0, 10, SIZES));
      assertThat(each.statistics().arena().privateMemory().freshBytes())
          .as("peak of private memory")
          .isEqualTo(TestCluster.SEGMENT_BYTES);
      assertThat(each.statistics().arena().memory().freshBytes()).isZero();
    }
  }

  private static List<BlockRequest> manyRequests() {
    return Stream.iterate(0L, map -> map < 10, map -> map + 1)
        .map(map -> request("owner", new BlockKey(1, map), 0, 10, 20 * CHUNK))
        .toList();
  }

  @Test
  void whereTheMemoryIsTooLittleTheSettingIsNamed() throws IOException {
    cluster.encryption(16, 2 * TestCluster.SEGMENT_BYTES);
    ExecutorExchange owner = cluster.open("owner");
    write(owner, KEY, 1, SIZES);
    try (MapOutputWriter writer = owner.newMapOutput(new BlockKey(2, 0), 1);
        ChunkReader reader = owner.read(requests(), FetchListener.NONE)) {
      Extent all = writer.allocate(TestCluster.SEGMENT_BYTES);
      assertThat(writer.isAtShare()).isTrue();
      assertThatThrownBy(() -> writer.allocateNow(1))
          .isInstanceOf(ArenaFullException.class)
          .hasMessageContaining("no room for 1 B. ");
      assertThatThrownBy(() -> writer.allocate(1))
          .isInstanceOf(ArenaFullException.class)
          .hasMessageContaining("no room for 1 B within 0.2 s. ")
          .hasMessageContaining("privateMemory");
      assertThatThrownBy(reader::next)
          .isInstanceOf(UncheckedIOException.class)
          .hasMessageContaining("no memory to load a chunk")
          .hasMessageContaining("privateMemory");
      writer.release(all);
      assertThat(writer.isAtShare()).isFalse();
    }
  }

  /**
   * Retained memory, as of a feed or of GPU spills, does not reduce the transient memory of tasks.
   */
  @ParameterizedTest
  @EnumSource(TransportMode.class)
  void readersAndWritersContinueWhileAllRetainedMemoryIsInUse(TransportMode mode)
      throws IOException {
    cluster.mode(mode).window(CHUNK, 1 << 20).encryption(16, 2 * TestCluster.SEGMENT_BYTES);
    ExecutorExchange owner = cluster.open("owner");
    ExecutorExchange reader = cluster.open("reader");
    Extent kept = owner.arena().allocate(TestCluster.SEGMENT_BYTES, Use.RETAINED);
    write(owner, KEY, 1, SIZES);
    try (ChunkReader holder = reader.read(requests(), FetchListener.NONE)) {
      holder.retainAll();
      Extent most = reader.arena().allocate(TestCluster.SEGMENT_BYTES - CHUNK, Use.RETAINED);
      assertThatThrownBy(() -> readAll(holder))
          .isInstanceOf(UncheckedIOException.class)
          .hasMessageContaining("privateMemory");
      for (int i = 0; i < 3; i++) {
        write(owner, new BlockKey(2, i), 1, SIZES);
        assertThat(readAll(reader, List.of(request("owner", new BlockKey(2, i), 0, 1, 2 * CHUNK))))
            .isEqualTo(expected(2, i, i + 1, 0, 1, SIZES));
      }
      reader.arena().free(most);
    }
    owner.arena().free(kept);
  }

  /** Both chunks are intact, of equal length and encrypted with the same key. */
  @ParameterizedTest
  @EnumSource(TransportMode.class)
  void twoSwappedChunksAreNoticedWithoutChecksums(TransportMode mode) throws IOException {
    owner(mode, false);
    DamagedDisk.swap(cluster.local(), ENCRYPTED_CHUNK);
    assertUnreadable(cluster.open("reader"), "is damaged or of another chunk");
  }

  @ParameterizedTest
  @EnumSource(TransportMode.class)
  void swappedChunksOfTwoMapOutputsAreNoticed(TransportMode mode) throws IOException {
    ExecutorExchange owner = owner(mode, false, ONE_CHUNK);
    write(owner, new BlockKey(1, 1), 1, ONE_CHUNK);
    DamagedDisk.swap(cluster.local(), ENCRYPTED_CHUNK);
    assertUnreadable(cluster.open("reader"), "is damaged or of another chunk");
  }

  @Test
  void aFullDiskIsAnErrorAndLosesNothingThatWasPublished() throws IOException {
    cluster.encrypted().memory(64 << 20, 2 * TestCluster.SEGMENT_BYTES);
    ExecutorExchange owner = cluster.open("owner");
    int published = 0;
    try {
      while (published < 100) {
        write(owner, new BlockKey(1, published), 1, SIZES);
        published++;
      }
    } catch (IOException e) {
      assertThat(e).hasMessageContaining("no room for").hasMessageContaining("diskBytes");
    }
    assertThat(published).isBetween(8, 10);
    assertThat(owner.statistics().arena().privateMemory().usedBytes()).isZero();
    assertThat(readAll(owner, List.of(request("owner", new BlockKey(1, 3), 0, 1, 2 * CHUNK))))
        .isEqualTo(expected(1, 3, 4, 0, 1, SIZES));
  }

  @Test
  void retainedChunksStayDecrypted() throws IOException {
    ExecutorExchange owner = owner(TransportMode.AUTO, true);
    try (ChunkReader reader = owner.read(requests(), FetchListener.NONE)) {
      reader.retainAll();
      assertThat(readAll(reader)).hasSize(2);
      assertThat(owner.statistics().arena().privateMemory().usedBytes())
          .isGreaterThanOrEqualTo(2 * CHUNK);
    }
    assertThat(owner.statistics().arena().privateMemory().usedBytes()).isZero();
  }
}
