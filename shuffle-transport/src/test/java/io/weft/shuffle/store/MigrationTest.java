package io.weft.shuffle.store;

import static io.weft.shuffle.peer.ExchangeCounter.OUTPUTS_MIGRATED;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.netty.channel.FileRegion;
import io.weft.shuffle.ExecutorExchange;
import io.weft.shuffle.fetch.BlockRequest;
import io.weft.shuffle.peer.ExchangeCounter;
import io.weft.shuffle.peer.TransportMode;
import io.weft.shuffle.store.Checksum.ChecksumException;
import io.weft.support.DamagedDisk;
import io.weft.support.TestBlocks;
import io.weft.support.TestCluster;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.channels.Channels;
import java.nio.channels.WritableByteChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import jdk.jfr.Recording;
import jdk.jfr.consumer.RecordingFile;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Migration of map outputs from one executor to another. */
class MigrationTest {
  private static final int PARTITIONS = 7;
  private static final BlockKey KEY = new BlockKey(3, 41);

  /**
   * Sizes with empty partitions, partitions of several chunks and a chunk above the segment size.
   */
  private static final TestBlocks.Sizes SIZES =
      (map, partition, chunk) ->
          partition == 5 && chunk == 0
              ? TestCluster.SEGMENT_BYTES + 17
              : chunk < partition % 3 ? 1000L * partition + chunk : 0;

  @TempDir Path folder;
  private TestCluster cluster;
  private ExecutorExchange old;
  private ExecutorExchange heir;

  /** Changes the settings of both executors. */
  TestCluster prepare(TestCluster plain) {
    return plain;
  }

  @BeforeEach
  void open() throws IOException {
    cluster = prepare(new TestCluster(folder));
    old = cluster.open("old");
    heir = cluster.open("heir");
  }

  @AfterEach
  void close() throws IOException {
    cluster.close();
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 13, 4096, 1 << 24})
  void arrivesInPiecesOfAnySize(int piece) throws Exception {
    TestBlocks.write(old, KEY, PARTITIONS, SIZES);
    move(bytes(old), piece);
    assertThat(heir.outputs()).containsExactly(KEY);
    assertThat(old.outputs()).as("the old output stays for its readers").containsExactly(KEY);
    assertThat(read(heir)).isEqualTo(TestBlocks.expected(3, 41, 42, 0, PARTITIONS, SIZES));
  }

  @Test
  void onlyItsWriterRecordsItAsWritten() throws Exception {
    Path file = folder.resolveSibling(folder.getFileName() + ".jfr");
    try (Recording recording = new Recording()) {
      recording.enable("weft.Write");
      recording.start();
      TestBlocks.write(old, KEY, PARTITIONS, SIZES);
      move(bytes(old), 8192);
      recording.stop();
      recording.dump(file);
    }
    assertThat(RecordingFile.readAllEvents(file)).hasSize(1);
    Files.delete(file);
  }

  @ParameterizedTest
  @EnumSource(TransportMode.class)
  void othersReadItFromTheHeirWhenTheOldOneIsGone(TransportMode mode) throws Exception {
    TestBlocks.write(old, KEY, PARTITIONS, SIZES);
    move(bytes(old), 8192);
    old.close();
    ExecutorExchange reader = cluster.mode(mode).open("reader");
    assertThat(read(reader))
        .containsExactlyInAnyOrderElementsOf(TestBlocks.expected(3, 41, 42, 0, PARTITIONS, SIZES));
  }

  @Test
  void anOutputWithoutRowsMovesToo() throws Exception {
    TestBlocks.write(old, KEY, PARTITIONS, (map, partition, chunk) -> 0);
    move(bytes(old), 8);
    assertThat(heir.holds(KEY)).isTrue();
  }

  @Test
  void aSecondCopyChangesNothing() throws Exception {
    TestBlocks.write(old, KEY, PARTITIONS, SIZES);
    byte[] stream = bytes(old);
    move(stream, 8192);
    long used = heir.statistics().arena().usedBytes();
    move(stream, 8192);
    assertThat(heir.statistics().arena().usedBytes()).isEqualTo(used);
    assertThat(heir.statistics().get(OUTPUTS_MIGRATED)).isEqualTo(1);
    assertThat(read(heir)).isEqualTo(TestBlocks.expected(3, 41, 42, 0, PARTITIONS, SIZES));
  }

  @Test
  void aDamagedByteIsNoticedAndNothingPublished() throws Exception {
    TestBlocks.write(old, KEY, PARTITIONS, SIZES);
    byte[] stream = bytes(old);
    stream[stream.length - 5] ^= 1;
    assertThatThrownBy(() -> move(stream, 8192)).hasMessageContaining("checksum is wrong");
    assertNothingCame();
  }

  @Test
  void aTruncatedStreamLeavesNothing() throws Exception {
    TestBlocks.write(old, KEY, PARTITIONS, SIZES);
    byte[] stream = bytes(old);
    for (int length : new int[] {0, 7, 16, 60, 2000, stream.length - 1}) {
      byte[] part = java.util.Arrays.copyOf(stream, length);
      assertThatThrownBy(() -> move(part, 8192)).hasMessageContaining("truncated");
      assertNothingCame();
    }
  }

  @Test
  void bytesBeyondTheIndexAreRefused() throws Exception {
    TestBlocks.write(old, KEY, PARTITIONS, SIZES);
    byte[] stream = bytes(old);
    byte[] longer = java.util.Arrays.copyOf(stream, stream.length + 1);
    assertThatThrownBy(() -> move(longer, 8192)).hasMessageContaining("beyond those in its index");
    assertNothingCame();
  }

  @Test
  void anotherFormatIsRefused() {
    assertThatThrownBy(() -> move(new byte[100], 8192)).hasMessageContaining("not a migrated map");
    assertNothingCame();
  }

  @Test
  void anOutputOfAnotherKeyIsRefused() throws Exception {
    BlockKey other = new BlockKey(3, 42);
    TestBlocks.write(old, other, PARTITIONS, SIZES);
    byte[] stream = read(old.outgoing(other).createInputStream());
    assertThatThrownBy(() -> move(stream, 8192)).hasMessageContaining("it describes");
    assertNothingCame();
  }

  @Test
  void anOutputOfARemovedShuffleIsRefused() throws Exception {
    TestBlocks.write(old, KEY, PARTITIONS, SIZES);
    byte[] stream = bytes(old);
    heir.removeShuffle(KEY.shuffleId());
    assertThatThrownBy(() -> move(stream, 8192)).hasMessageContaining("shuffle was removed here");
    assertNothingCame();
  }

  /** Spark may compute a shuffle again after its removal, and removes it again. */
  @Test
  void anOutputOfAShuffleThatIsWrittenAgainIsTakenOver() throws Exception {
    TestBlocks.write(old, KEY, PARTITIONS, SIZES);
    heir.removeShuffle(KEY.shuffleId());
    assertThat(heir.wasRemoved(KEY.shuffleId())).isTrue();
    BlockKey again = new BlockKey(KEY.shuffleId(), KEY.mapId() + 1);
    TestBlocks.write(heir, again, PARTITIONS, SIZES);
    assertThat(heir.wasRemoved(KEY.shuffleId())).isFalse();
    move(bytes(old), 8192);
    assertThat(heir.outputs()).containsExactlyInAnyOrder(KEY, again);
  }

  @Test
  void anOutputIsFreedIfItsShuffleIsRemovedMeanwhile() throws Exception {
    TestBlocks.write(old, KEY, PARTITIONS, SIZES);
    ByteBuffer stream = ByteBuffer.wrap(bytes(old));
    try (IncomingOutput incoming = heir.incoming(KEY)) {
      incoming.append(stream.slice().limit(stream.remaining() / 2));
      heir.removeShuffle(KEY.shuffleId());
      ByteBuffer rest = stream.position(stream.remaining() / 2);
      assertThatThrownBy(
              () -> {
                incoming.append(rest);
                incoming.finish();
              })
          .hasMessageContaining("removed");
    }
    assertNothingCame();
  }

  @Test
  void aStreamThatIsOpenKeepsTheMemoryOfARemovedShuffle() throws Exception {
    TestBlocks.write(old, KEY, PARTITIONS, SIZES);
    byte[] expected = bytes(old);
    ManagedBuffer buffer = old.outgoing(KEY);
    FileRegion region = (FileRegion) buffer.convertToNetty();
    old.removeShuffle(KEY.shuffleId());
    assertThat(old.statistics().retiredBytes()).isPositive();
    assertThat(drain(region)).isEqualTo(expected);
    region.release();
    TestCluster.assertNothingHeld(old);
    assertThatThrownBy(buffer::convertToNetty).hasMessageContaining("removed");
  }

  @Test
  void anOutputThatDoesNotFitIsRefusedWithTheSettingsToRaise() throws Exception {
    ExecutorExchange small =
        cluster.memory(TestCluster.SEGMENT_BYTES, TestCluster.SEGMENT_BYTES).open("small");
    TestBlocks.write(
        old, KEY, 1, (map, partition, chunk) -> chunk < 5 ? TestCluster.SEGMENT_BYTES / 2 : 0);
    byte[] stream = bytes(old);
    try (IncomingOutput incoming = small.incoming(KEY)) {
      assertThatThrownBy(() -> incoming.append(ByteBuffer.wrap(stream)))
          .hasMessageContaining("diskBytes");
    }
    assertThat(small.outputs()).isEmpty();
    TestCluster.assertNothingHeld(small);
  }

  private void assertNothingCame() {
    assertThat(heir.outputs()).isEmpty();
    TestCluster.assertNothingHeld(heir);
  }

  /** Sends pieces, every second one in a direct buffer as Netty does. */
  private void move(byte[] stream, int piece) throws IOException {
    try (IncomingOutput incoming = heir.incoming(KEY)) {
      for (int at = 0, count = 0; at < stream.length; at += piece, count++) {
        int length = Math.min(piece, stream.length - at);
        ByteBuffer bytes = ByteBuffer.wrap(stream, at, length);
        incoming.append(
            count % 2 == 0 ? bytes : ByteBuffer.allocateDirect(length).put(bytes).flip());
      }
      incoming.finish();
    }
  }

  private static byte[] bytes(ExecutorExchange from) throws IOException {
    ManagedBuffer buffer = from.outgoing(KEY);
    FileRegion region = (FileRegion) buffer.convertToNetty();
    byte[] bytes = drain(region);
    region.release();
    assertThat(bytes).hasSize((int) buffer.size()).isEqualTo(read(buffer.createInputStream()));
    return bytes;
  }

  private static byte[] drain(FileRegion region) throws IOException {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    WritableByteChannel channel = Channels.newChannel(bytes);
    while (region.transferred() < region.count()) {
      assertThat(region.transferTo(channel, region.transferred())).isPositive();
    }
    return bytes.toByteArray();
  }

  private static byte[] read(InputStream input) throws IOException {
    try (input) {
      return input.readAllBytes();
    }
  }

  private static List<TestBlocks.Seen> read(ExecutorExchange reader) throws Exception {
    long bytes =
        TestBlocks.expected(3, 41, 42, 0, PARTITIONS, SIZES).stream()
            .mapToLong(TestBlocks.Seen::length)
            .sum();
    BlockRequest request = TestBlocks.request("heir", KEY, 0, PARTITIONS, bytes);
    return TestBlocks.readAll(reader, List.of(request));
  }

  private static final long DISK_CHUNK = 5000;

  /** Opens an executor whose second output is on disk. */
  private ExecutorExchange ownerOnDisk() throws IOException {
    ExecutorExchange owner =
        cluster.memory(TestCluster.SEGMENT_BYTES, 64 << 20).open("owner on disk");
    TestBlocks.write(owner, new BlockKey(2, 0), 1, (map, p, chunk) -> chunk == 0 ? 1_048_000 : 0);
    TestBlocks.write(owner, KEY, 1, (map, p, chunk) -> chunk == 0 ? DISK_CHUNK : 0);
    assertThat(owner.statistics().get(ExchangeCounter.BYTES_SPILLED)).isPositive();
    return owner;
  }

  @Test
  void aSpilledOutputMoves() throws Exception {
    move(bytes(ownerOnDisk()), 1 << 24);
    List<BlockRequest> all = List.of(TestBlocks.request("heir", KEY, 0, 1, DISK_CHUNK));
    assertThat(TestBlocks.readAll(heir, all))
        .isEqualTo(
            TestBlocks.expected(3, 41, 42, 0, 1, (map, p, chunk) -> chunk == 0 ? DISK_CHUNK : 0));
  }

  /** Otherwise the receiver would compute a new checksum, and readers would accept the damage. */
  @Test
  void aSpilledOutputThatWasDamagedDoesNotMove() throws Exception {
    ExecutorExchange owner = ownerOnDisk();
    DamagedDisk.damage(cluster.local(), DISK_CHUNK / 2);
    assertThatThrownBy(() -> bytes(owner))
        .isInstanceOf(ChecksumException.class)
        .hasMessageContaining("chunk 0 of shuffle 3 map 41")
        .hasMessageMatching(".*its bytes have CRC32C [0-9a-f]{8}, it was [0-9a-f]{8}");
  }
}
