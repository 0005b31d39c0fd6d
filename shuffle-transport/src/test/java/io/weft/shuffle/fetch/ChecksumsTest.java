package io.weft.shuffle.fetch;

import static io.weft.support.TestBlocks.readAll;
import static io.weft.support.TestBlocks.request;
import static io.weft.support.TestBlocks.write;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.shuffle.ExchangeOptions.TrafficOptions;
import io.weft.shuffle.ExecutorExchange;
import io.weft.shuffle.net.Compression;
import io.weft.shuffle.peer.ExchangeCounter;
import io.weft.shuffle.peer.TransportMode;
import io.weft.shuffle.store.BlockKey;
import io.weft.support.DamagedDisk;
import io.weft.support.Tap;
import io.weft.support.TestBlocks.Sizes;
import io.weft.support.TestCluster;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Bytes that are damaged on the network or on disk. */
class ChecksumsTest {
  private static final BlockKey KEY = new BlockKey(1, 0);
  private static final int CHUNK = 100_000;
  private static final Sizes SIZES = (map, partition, chunk) -> chunk < 2 ? CHUNK : 0;

  @TempDir Path folder;

  private TestCluster cluster;

  @BeforeEach
  void open() throws IOException {
    cluster = new TestCluster(folder).mode(TransportMode.TCP);
  }

  @AfterEach
  void close() throws IOException {
    cluster.close();
  }

  private void withoutChecksums() {
    cluster.traffic(new TrafficOptions(false, Compression.Rule.NONE, 1 << 20, 64 << 20, 32 << 20));
  }

  private ExecutorExchange owner() throws IOException {
    ExecutorExchange owner = cluster.open("owner");
    write(owner, KEY, 1, SIZES);
    return owner;
  }

  private static List<BlockRequest> requests() {
    return List.of(request("owner", KEY, 0, 1, 2 * CHUNK));
  }

  @Test
  void aBlockThatWasDamagedOnTheWayIsFetchedOnceMore() throws Exception {
    try (Tap tap = new Tap(owner().address()).flipAt(CHUNK + CHUNK / 2)) {
      cluster.announce(tap.address());
      ExecutorExchange reader = cluster.open("reader");
      assertThat(readAll(reader, requests())).hasSize(2);
      assertThat(reader.statistics().get(ExchangeCounter.CHECKSUM_FAILURES)).isEqualTo(1);
      assertThat(reader.statistics().get(ExchangeCounter.REQUESTS)).isEqualTo(2);
    }
  }

  @Test
  void anAnswerThatWasDamagedOnTheWayIsAskedForOnceMore() throws Exception {
    // The transport puts 21 bytes before the message. The flipped byte is in a chunk length.
    try (Tap tap = new Tap(owner().address()).flipAt(21 + 8 + 4 + 36 + 16 + 33)) {
      cluster.announce(tap.address());
      ExecutorExchange reader = cluster.open("reader");
      assertThat(readAll(reader, requests())).hasSize(2);
      assertThat(reader.statistics().get(ExchangeCounter.CHECKSUM_FAILURES)).isEqualTo(1);
    }
  }

  @Test
  void damageTwiceIsAFailureThatNamesBothSidesAndBothSums() throws Exception {
    try (Tap tap = new Tap(owner().address()).flipAt(CHUNK / 2, 2 * CHUNK + CHUNK / 2)) {
      cluster.announce(tap.address());
      ExecutorExchange reader = cluster.open("reader");
      assertThatThrownBy(() -> readAll(reader, requests()))
          .isInstanceOf(BlockFetchException.class)
          .hasMessageContaining("executor reader cannot read shuffle 1 map 0")
          .hasMessageContaining("of executor owner")
          .hasMessageContaining("chunk 0 of the answer (partition 0)")
          .hasMessageMatching(".*its bytes have CRC32C [0-9a-f]{8}, it was [0-9a-f]{8}");
      TestCluster.assertNothingHeld(reader);
    }
  }

  /** Shows that the damage in the tests above is real. */
  @Test
  void withoutChecksumsDamageArrives() throws Exception {
    withoutChecksums();
    try (Tap tap = new Tap(owner().address()).flipAt(CHUNK / 2)) {
      cluster.announce(tap.address());
      ExecutorExchange reader = cluster.open("reader");
      assertThatThrownBy(() -> readAll(reader, requests()))
          .isInstanceOf(AssertionError.class)
          .hasMessageContaining("differs at byte");
    }
  }

  /** Fills the only segment of memory, so that later blocks are on disk. */
  private ExecutorExchange ownerOnDisk(TransportMode mode) throws IOException {
    cluster.mode(mode).memory(TestCluster.SEGMENT_BYTES, 64 << 20);
    ExecutorExchange owner = cluster.open("owner");
    write(owner, new BlockKey(2, 0), 1, (map, p, chunk) -> chunk == 0 ? 1_048_000 : 0);
    write(owner, KEY, 1, SIZES);
    assertThat(owner.statistics().get(ExchangeCounter.BYTES_SPILLED)).isPositive();
    cluster.memory(64 << 20, 0);
    return owner;
  }

  private void assertDamageIsFound(ExecutorExchange reader) throws IOException {
    assertThat(readAll(reader, requests())).as("before the damage").hasSize(2);
    DamagedDisk.damage(cluster.local(), CHUNK / 2);
    assertThatThrownBy(() -> readAll(reader, requests()))
        .isInstanceOf(BlockFetchException.class)
        .hasMessageContaining("cannot read shuffle 1 map 0")
        .hasMessageContaining("chunk 0 ")
        .hasMessageMatching(".*its bytes have CRC32C [0-9a-f]{8}, it was [0-9a-f]{8}");
    assertThat(reader.statistics().get(ExchangeCounter.CHECKSUM_FAILURES)).isPositive();
  }

  @Test
  void aBlockOfOwnsDiskThatWasDamagedIsNotRead() throws Exception {
    assertDamageIsFound(ownerOnDisk(TransportMode.AUTO));
  }

  @Test
  void aBlockOfAPeersDiskThatWasDamagedIsNotReadInPlace() throws Exception {
    ownerOnDisk(TransportMode.AUTO);
    assertDamageIsFound(cluster.open("reader"));
  }

  @Test
  void aBlockThatWasDamagedOnDiskIsNotReceived() throws Exception {
    ownerOnDisk(TransportMode.TCP);
    assertDamageIsFound(cluster.open("reader"));
  }

  @Test
  void withoutChecksumsDamageOnDiskIsRead() throws Exception {
    withoutChecksums();
    ExecutorExchange owner = ownerOnDisk(TransportMode.AUTO);
    DamagedDisk.damage(cluster.local(), CHUNK / 2);
    assertThatThrownBy(() -> readAll(owner, requests()))
        .isInstanceOf(AssertionError.class)
        .hasMessageContaining("differs at byte");
  }
}
