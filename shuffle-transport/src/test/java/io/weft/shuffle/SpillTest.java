package io.weft.shuffle;

import static io.weft.support.TestBlocks.expected;
import static io.weft.support.TestBlocks.readAll;
import static io.weft.support.TestBlocks.request;
import static io.weft.support.TestBlocks.write;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.weft.shuffle.ExchangeOptions.MemoryGrant;
import io.weft.shuffle.fetch.BlockRequest;
import io.weft.shuffle.fetch.ChunkReader;
import io.weft.shuffle.fetch.FetchListener;
import io.weft.shuffle.peer.ExchangeCounter;
import io.weft.shuffle.peer.TransportMode;
import io.weft.shuffle.store.BlockKey;
import io.weft.support.TestBlocks.Sizes;
import io.weft.support.TestCluster;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalLong;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Blocks on disk: a full disk, and how many bytes of a block are loaded. */
class SpillTest {
  private static final Sizes SIZES = (map, partition, chunk) -> chunk == 0 ? 100_000 : 0;

  /** Large, so that the pages that a kernel maps around a used page are a small part. */
  private static final long LARGE_SEGMENT_BYTES = 16 << 20;

  private static final int BLOCK_BYTES = 80_000;

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

  @ParameterizedTest
  @EnumSource(TransportMode.class)
  void aFullDiskIsAnErrorAndLosesNothingThatWasPublished(TransportMode mode) throws IOException {
    cluster.mode(mode).memory(TestCluster.SEGMENT_BYTES, 2 * TestCluster.SEGMENT_BYTES);
    ExecutorExchange owner = cluster.open("owner");
    int published = writeUntilFull(owner);
    assertThat(published).as("outputs in one segment of memory and two of disk").isBetween(9, 10);
    assertThat(owner.statistics().get(ExchangeCounter.BYTES_SPILLED)).isPositive();
    long used = owner.statistics().arena().usedBytes();
    assertThat(used).as("bytes of published outputs only").isEqualTo(published * 3L * 100_032);
    cluster.memory(64 << 20, 0);
    for (ExecutorExchange reader : List.of(owner, cluster.open("reader"))) {
      assertThat(readAll(reader, requests(published)))
          .containsExactlyInAnyOrderElementsOf(expected(1, 0, published, 0, 3, SIZES));
    }
  }

  /** Returns how many outputs were published before one failed. */
  private static int writeUntilFull(ExecutorExchange owner) {
    int published = 0;
    while (published < 100) {
      try {
        write(owner, new BlockKey(1, published), 3, SIZES);
        published++;
      } catch (IOException e) {
        assertThat(e)
            .hasMessageContaining("no room for")
            .hasMessageContaining("shared memory: ")
            .hasMessageContaining("disk: ")
            .hasMessageContaining("diskBytes");
        return published;
      }
    }
    throw new AssertionError("never full");
  }

  private static List<BlockRequest> requests(int maps) {
    List<BlockRequest> requests = new ArrayList<>();
    for (long map = 0; map < maps; map++) {
      requests.add(request("owner", new BlockKey(1, map), 0, 3, 300_000));
    }
    return requests;
  }

  /** Writes 200 blocks of 80,000 bytes to one segment on disk. */
  private ExecutorExchange ownerOfManyBlocks() throws IOException {
    cluster.segments(LARGE_SEGMENT_BYTES).memory(LARGE_SEGMENT_BYTES, 256 << 20);
    ExecutorExchange owner = cluster.open("owner");
    write(
        owner,
        new BlockKey(2, 0),
        1,
        (map, p, chunk) -> chunk == 0 ? (int) LARGE_SEGMENT_BYTES - 4096 : 0);
    write(owner, new BlockKey(1, 0), 200, (map, p, chunk) -> chunk == 0 ? BLOCK_BYTES : 0);
    assertThat(owner.statistics().get(ExchangeCounter.BYTES_SPILLED)).isPositive();
    cluster.memory(64 << 20, 0);
    return owner;
  }

  private static List<BlockRequest> oneOfMany() {
    return List.of(request("owner", new BlockKey(1, 0), 100, 101, BLOCK_BYTES));
  }

  @Test
  void aReaderOnTheHostLoadsThePagesOfItsBlock() throws IOException {
    ownerOfManyBlocks();
    ExecutorExchange reader = cluster.open("reader");
    try (ChunkReader chunks = reader.read(oneOfMany(), FetchListener.NONE)) {
      assertThat(chunks.next()).isTrue();
      assertThat(residentKibibytes(cluster.local()))
          .as("KiB of the segment of 16 MiB; kernels map up to 2 MiB around each of its two ends")
          .isBetween((long) BLOCK_BYTES >> 10, 4200L);
      assertThat(chunks.next()).isFalse();
    }
  }

  /** In a container whose manager counts mapped files, also while tasks hold chunks in them. */
  @Test
  void mappedPagesLeaveAFullContainer() throws IOException {
    cluster.grant(new MemoryGrant(1, 0, 0, OptionalLong.of(1)));
    ownerOfManyBlocks();
    ExecutorExchange reader = cluster.open("reader");
    List<BlockRequest> all = List.of(request("owner", new BlockKey(1, 0), 0, 200, 16_000_000));
    try (ChunkReader chunks = reader.read(all, FetchListener.NONE)) {
      assertThat(chunks.next()).isTrue();
      await("no resident page of the reader's and the owner's mappings")
          .atMost(Duration.ofSeconds(30))
          .until(() -> residentKibibytes(cluster.local()) + residentKibibytes("rw-s", folder) == 0);
    }
    assertThat(readAll(reader, all))
        .containsExactlyInAnyOrderElementsOf(
            expected(1, 0, 1, 0, 200, (map, p, chunk) -> chunk == 0 ? BLOCK_BYTES : 0));
  }

  /** The resident KiB of read-only mappings of files below a folder. */
  private static long residentKibibytes(Path below) throws IOException {
    return residentKibibytes("r--s", below);
  }

  private static long residentKibibytes(String access, Path below) throws IOException {
    long sum = 0;
    boolean ours = false;
    for (String line : Files.readAllLines(Path.of("/proc/self/smaps"))) {
      if (line.matches("[0-9a-f]+-[0-9a-f]+ .*")) {
        ours = line.contains(" " + access + " ") && line.contains(below.toRealPath().toString());
      } else if (ours && line.startsWith("Rss:")) {
        sum += Long.parseLong(line.replaceAll("\\D", ""));
      }
    }
    return sum;
  }

  @Test
  void aPeerReceivesItsBlockOnly() throws IOException {
    cluster.mode(TransportMode.TCP);
    ExecutorExchange owner = ownerOfManyBlocks();
    assertThat(readAll(cluster.open("reader"), oneOfMany())).hasSize(1);
    assertThat(owner.statistics().get(ExchangeCounter.BYTES_SERVED)).isEqualTo(BLOCK_BYTES);
  }
}
