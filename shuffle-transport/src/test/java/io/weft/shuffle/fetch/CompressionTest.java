package io.weft.shuffle.fetch;

import static io.weft.support.TestBlocks.readAll;
import static io.weft.support.TestBlocks.request;
import static org.assertj.core.api.Assertions.assertThat;

import io.weft.memory.Extent;
import io.weft.memory.Memory;
import io.weft.shuffle.ExchangeOptions.TrafficOptions;
import io.weft.shuffle.ExchangeStatistics;
import io.weft.shuffle.ExecutorExchange;
import io.weft.shuffle.net.Compression;
import io.weft.shuffle.peer.ExchangeCounter;
import io.weft.shuffle.peer.TransportMode;
import io.weft.shuffle.store.BlockKey;
import io.weft.shuffle.store.MapOutputWriter;
import io.weft.support.Tap;
import io.weft.support.TestBlocks;
import io.weft.support.TestCluster;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.SparkConf;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Chunks that are compressed for the network, and chunks that do not shrink. */
class CompressionTest {
  private static final BlockKey KEY = new BlockKey(1, 0);

  /** Tiny, small, as long as a piece of the stream, and long enough for sampling. */
  private static final int[] LENGTHS = {1, 8, 127, 128, 1000, 4096, 65_536, 70_001, 700_000};

  private static final int SLOW_CHUNKS = 12;
  private static final int SLOW_CHUNK_BYTES = 1 << 20;

  /** Slower than any codec. */
  private static final long SLOW_BYTES_PER_SECOND = 20_000_000;

  @TempDir Path folder;

  private TestCluster cluster;

  @BeforeEach
  void open() throws IOException {
    cluster = new TestCluster(folder).mode(TransportMode.TCP).window(1 << 20, 2 << 20);
  }

  @AfterEach
  void close() throws IOException {
    cluster.close();
  }

  private void compression(Compression.Rule compression) {
    cluster.traffic(new TrafficOptions(true, compression, 2 << 20, 64 << 20, 32 << 20));
  }

  private static byte value(int chunk, long at) {
    return (byte) (at / 50 * (chunk + 1));
  }

  private static void writeRepetitive(ExecutorExchange owner) throws IOException {
    try (MapOutputWriter writer = owner.newMapOutput(KEY, 1)) {
      for (int chunk = 0; chunk < LENGTHS.length; chunk++) {
        Extent extent = writer.allocate(LENGTHS[chunk]);
        for (long at = 0; at < LENGTHS[chunk]; at++) {
          Memory.putByte(extent.address() + at, value(chunk, at));
        }
        writer.commit(0, extent, LENGTHS[chunk], chunk);
      }
      writer.publish();
    }
  }

  private static void assertRepetitive(ExecutorExchange exchange) throws BlockFetchException {
    List<BlockRequest> requests = List.of(request("owner", KEY, 0, 1, 850_000));
    try (ChunkReader reader = exchange.read(requests, FetchListener.NONE)) {
      int chunk = 0;
      while (reader.next()) {
        assertThat(reader.length()).isEqualTo(LENGTHS[chunk]);
        assertThat(reader.rows()).isEqualTo(chunk);
        for (long at = 0; at < LENGTHS[chunk]; at++) {
          if (Memory.getByte(reader.address() + at) != value(chunk, at)) {
            throw new AssertionError("chunk " + chunk + " differs at byte " + at);
          }
        }
        chunk++;
      }
      assertThat(chunk).isEqualTo(LENGTHS.length);
    }
  }

  @ParameterizedTest
  @EnumSource(Compression.Rule.class)
  void chunksRoundTrip(Compression.Rule compression) throws IOException {
    compression(compression);
    ExecutorExchange owner = cluster.open("owner");
    writeRepetitive(owner);
    assertRepetitive(cluster.open("reader"));
    ExchangeStatistics now = owner.statistics();
    long raw = now.get(ExchangeCounter.COMPRESSED_BYTES_BEFORE);
    if (compression == Compression.Rule.NONE || compression == Compression.Rule.AUTO) {
      assertThat(raw).as("one request says nothing of the network").isZero();
    } else {
      assertThat(raw)
          .as("compressed: all but the tiny ones")
          .isEqualTo(Arrays.stream(LENGTHS).filter(length -> length >= 128).sum());
      assertThat(now.get(ExchangeCounter.COMPRESSED_BYTES_SENT)).isPositive().isLessThan(raw / 2);
    }
  }

  /** Encrypted connections deliver arrays, and other pieces. */
  @ParameterizedTest
  @EnumSource(
      value = Compression.Rule.class,
      names = {"LZ4", "ZSTD"})
  void chunksComeBackOverAnEncryptedConnection(Compression.Rule compression) throws IOException {
    compression(compression);
    cluster.conf(
        new SparkConf(false)
            .set("spark.authenticate", "true")
            .set("spark.authenticate.secret", "right")
            .set("spark.network.crypto.enabled", "true"));
    writeRepetitive(cluster.open("owner"));
    assertRepetitive(cluster.open("reader"));
  }

  @Test
  void damageOfCompressedBytesIsNoticedAndRepaired() throws IOException {
    compression(Compression.Rule.LZ4);
    ExecutorExchange owner = cluster.open("owner");
    writeRepetitive(owner);
    try (Tap tap = new Tap(owner.address()).flipAt(3000)) {
      cluster.announce(tap.address());
      ExecutorExchange reader = cluster.open("reader");
      assertRepetitive(reader);
      assertThat(reader.statistics().get(ExchangeCounter.CHECKSUM_FAILURES)).isEqualTo(1);
    }
  }

  /** Random bytes do not shrink. After a few failures most chunks are not tried. */
  @ParameterizedTest
  @EnumSource(
      value = Compression.Rule.class,
      names = {"LZ4", "ZSTD"})
  void incompressibleChunksAreSentUncompressedAndSoonNotTried(Compression.Rule compression)
      throws IOException {
    compression(compression);
    ExecutorExchange owner = cluster.open("owner");
    TestBlocks.write(owner, KEY, 1, (map, partition, chunk) -> chunk < 300 ? 3000 : 0);
    long before = owner.statistics().arena().allocations();
    ExecutorExchange reader = cluster.open("reader");
    assertThat(readAll(reader, List.of(request("owner", KEY, 0, 1, 900_000)))).hasSize(300);
    assertThat(owner.statistics().get(ExchangeCounter.COMPRESSED_BYTES_BEFORE)).isZero();
    assertThat(owner.statistics().arena().allocations() - before)
        .as("chunks that were tried")
        .isBetween(1L, 20L);
  }

  /** The first requests measure the network and try the codecs; later ones ask for one. */
  @Test
  void aSlowNetworkIsNoticedAndLaterRequestsAreCompressed() throws IOException {
    compression(Compression.Rule.AUTO);
    ExecutorExchange owner = cluster.open("owner");
    try (MapOutputWriter writer = owner.newMapOutput(KEY, 1)) {
      for (int chunk = 0; chunk < SLOW_CHUNKS; chunk++) {
        Extent extent = writer.allocate(SLOW_CHUNK_BYTES);
        for (long at = 0; at < SLOW_CHUNK_BYTES; at += Long.BYTES) {
          Memory.putLong(extent.address() + at, at / 64);
        }
        writer.commit(0, extent, SLOW_CHUNK_BYTES, 1);
      }
      writer.publish();
    }
    try (Tap tap = new Tap(owner.address()).slow(SLOW_BYTES_PER_SECOND)) {
      cluster.announce(tap.address());
      ExecutorExchange reader = cluster.open("reader");
      BlockRequest all = request("owner", KEY, 0, 1, (long) SLOW_CHUNKS * SLOW_CHUNK_BYTES);
      assertCounted(reader, all);
      ExchangeStatistics now = owner.statistics();
      long before = now.get(ExchangeCounter.COMPRESSED_BYTES_BEFORE);
      assertThat(before)
          .as("compressed after the first requests")
          .isBetween(1L, (SLOW_CHUNKS - 4L) * SLOW_CHUNK_BYTES);
      assertThat(now.get(ExchangeCounter.COMPRESSED_BYTES_SENT)).isLessThan(before / 2);
    }
  }

  private static void assertCounted(ExecutorExchange exchange, BlockRequest all)
      throws BlockFetchException {
    int chunks = 0;
    try (ChunkReader reader = exchange.read(List.of(all), FetchListener.NONE)) {
      while (reader.next()) {
        for (long at = 0; at < reader.length(); at += Long.BYTES) {
          if (Memory.getLong(reader.address() + at) != at / 64) {
            throw new AssertionError("chunk " + chunks + " differs at byte " + at);
          }
        }
        chunks++;
      }
    }
    assertThat(chunks).isEqualTo(SLOW_CHUNKS);
  }
}
