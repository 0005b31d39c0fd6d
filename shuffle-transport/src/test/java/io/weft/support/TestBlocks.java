package io.weft.support;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.memory.Extent;
import io.weft.memory.Memory;
import io.weft.shuffle.ExecutorExchange;
import io.weft.shuffle.fetch.BlockFetchException;
import io.weft.shuffle.fetch.BlockRequest;
import io.weft.shuffle.fetch.ChunkReader;
import io.weft.shuffle.fetch.FetchListener;
import io.weft.shuffle.store.BlockKey;
import io.weft.shuffle.store.MapOutputWriter;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;

/** Writes map outputs with distinguishable contents and verifies them when they are read. */
public final class TestBlocks {
  private TestBlocks() {}

  /** A chunk as a reader saw it. */
  public record Seen(BlockKey key, int partition, int rows, long length) {}

  /** The length in bytes of a chunk of a partition, or 0 after its last chunk. */
  @FunctionalInterface
  public interface Sizes {
    long of(long mapId, int partition, int chunk);
  }

  /** Publishes a map output with these chunk lengths. */
  public static void write(ExecutorExchange exchange, BlockKey key, int partitions, Sizes sizes)
      throws IOException {
    write(exchange.newMapOutput(key, partitions), key, partitions, sizes);
  }

  /** Fills a map output, publishes it and closes the writer. */
  public static void write(MapOutputWriter output, BlockKey key, int partitions, Sizes sizes)
      throws IOException {
    try (MapOutputWriter writer = output) {
      for (int partition = 0; partition < partitions; partition++) {
        int chunk = 0;
        for (long size; (size = sizes.of(key.mapId(), partition, chunk)) > 0; chunk++) {
          Extent extent = writer.allocate(size + 100);
          fill(extent.address(), size, seed(key, partition, chunk));
          writer.commit(partition, extent, size, chunk + 1);
        }
      }
      writer.publish();
    }
  }

  private static long seed(BlockKey key, int partition, int chunk) {
    return ((key.shuffleId() * 31L + key.mapId()) * 31 + partition) * 31 + chunk;
  }

  private static void fill(long address, long size, long seed) {
    SplittableRandom random = new SplittableRandom(seed);
    long at = 0;
    for (; at + 8 <= size; at += 8) {
      Memory.putLong(address + at, random.nextLong());
    }
    for (; at < size; at++) {
      Memory.putByte(address + at, (byte) random.nextInt());
    }
  }

  /** Asserts that memory has the contents of a chunk. */
  public static void assertContents(
      long address, long size, BlockKey key, int partition, int chunk) {
    SplittableRandom random = new SplittableRandom(seed(key, partition, chunk));
    long at = 0;
    for (; at + 8 <= size; at += 8) {
      if (Memory.getLong(address + at) != random.nextLong()) {
        throw new AssertionError(key + " partition " + partition + " differs at byte " + at);
      }
    }
    for (; at < size; at++) {
      assertThat(Memory.getByte(address + at)).isEqualTo((byte) random.nextInt());
    }
  }

  /** Reads all chunks and compares each with its written contents. */
  public static List<Seen> readAll(ChunkReader reader) throws BlockFetchException {
    List<Seen> seen = new ArrayList<>();
    BlockKey key = null;
    int partition = -1;
    int chunk = 0;
    while (reader.next()) {
      BlockRequest request = reader.request();
      boolean same = request.key().equals(key) && reader.partition() == partition;
      chunk = same ? chunk + 1 : 0;
      key = request.key();
      partition = reader.partition();
      assertThat(partition).isBetween(request.startPartition(), request.endPartition() - 1);
      assertThat(reader.address() % 64).isZero();
      assertThat(reader.rows()).isEqualTo(chunk + 1);
      assertContents(reader.address(), reader.length(), key, partition, chunk);
      seen.add(new Seen(key, partition, reader.rows(), reader.length()));
    }
    return seen;
  }

  /** Opens a reader, reads all chunks and closes it. */
  public static List<Seen> readAll(ExecutorExchange exchange, List<BlockRequest> requests)
      throws BlockFetchException {
    try (ChunkReader reader = exchange.read(requests, FetchListener.NONE)) {
      return readAll(reader);
    }
  }

  /** A request for partitions [start, end) of a map output at an executor. */
  public static BlockRequest request(
      String executorId, BlockKey key, int start, int end, long bytes) {
    return new BlockRequest(executorId, key, (int) key.mapId(), start, end, bytes);
  }

  /** The chunks a reader should see of partitions [start, end) of some maps, in no order. */
  public static List<Seen> expected(
      int shuffle, int firstMap, int lastMap, int start, int end, Sizes sizes) {
    List<Seen> expected = new ArrayList<>();
    for (long map = firstMap; map < lastMap; map++) {
      for (int partition = start; partition < end; partition++) {
        int chunk = 0;
        for (long size; (size = sizes.of(map, partition, chunk)) > 0; chunk++) {
          expected.add(new Seen(new BlockKey(shuffle, map), partition, chunk + 1, size));
        }
      }
    }
    return expected;
  }
}
