package io.weft.examples.bench.transfer;

import io.weft.memory.Extent;
import io.weft.memory.Memory;
import io.weft.shuffle.ExecutorExchange;
import io.weft.shuffle.fetch.BlockRequest;
import io.weft.shuffle.fetch.ChunkReader;
import io.weft.shuffle.fetch.FetchListener;
import io.weft.shuffle.store.BlockKey;
import io.weft.shuffle.store.MapOutputWriter;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import org.HdrHistogram.Histogram;

/**
 * A set of blocks of one size: each partition of each map output is a block. For one thread.
 *
 * @param shuffle the id of the shuffle
 * @param maps number of map outputs
 * @param partitions of each map output
 * @param bytes of each partition; a multiple of 8
 */
record PeerBlocks(int shuffle, int maps, int partitions, int bytes) {
  /** Parses four words of an order. */
  static PeerBlocks parse(String[] words, int from) {
    return new PeerBlocks(
        Integer.parseInt(words[from]),
        Integer.parseInt(words[from + 1]),
        Integer.parseInt(words[from + 2]),
        Integer.parseInt(words[from + 3]));
  }

  String words() {
    return shuffle + " " + maps + " " + partitions + " " + bytes;
  }

  long allBytes() {
    return (long) maps * partitions * bytes;
  }

  void write(ExecutorExchange exchange) throws IOException {
    for (int map = 0; map < maps; map++) {
      try (MapOutputWriter writer = exchange.newMapOutput(new BlockKey(shuffle, map), partitions)) {
        for (int partition = 0; partition < partitions; partition++) {
          Extent extent = writer.allocate(bytes);
          fill(extent.address(), (long) map << 32 | partition);
          writer.commit(partition, extent, bytes, 1);
        }
        writer.publish();
      }
    }
  }

  /** Writes rows of four numbers: a counter, one of few values, a price, and random bits. */
  private void fill(long address, long first) {
    SplittableRandom random = new SplittableRandom(first);
    for (int at = 0; at < bytes; at += Long.BYTES) {
      Memory.putLong(
          address + at,
          switch (at / Long.BYTES % 4) {
            case 0 -> first + at;
            case 1 -> random.nextInt(1000);
            case 2 -> Double.doubleToLongBits(random.nextInt(100_000) / 100.0);
            default -> random.nextLong();
          });
    }
  }

  private List<BlockRequest> requests(String owner) {
    List<BlockRequest> requests = new ArrayList<>(maps * partitions);
    for (int map = 0; map < maps; map++) {
      for (int partition = 0; partition < partitions; partition++) {
        BlockKey key = new BlockKey(shuffle, map);
        requests.add(new BlockRequest(owner, key, map, partition, partition + 1, bytes));
      }
    }
    return requests;
  }

  /** Reads all blocks with one reader; returns nanoseconds. */
  long readTogether(ExecutorExchange exchange, String owner) throws IOException {
    List<BlockRequest> requests = requests(owner);
    long start = System.nanoTime();
    long read = read(exchange, requests);
    long nanos = System.nanoTime() - start;
    requireAll(read);
    return nanos;
  }

  /** Reads the blocks one by one, each with a new reader; returns nanoseconds. */
  long readOneByOne(ExecutorExchange exchange, String owner) throws IOException {
    List<BlockRequest> requests = requests(owner);
    long read = 0;
    long start = System.nanoTime();
    for (BlockRequest request : requests) {
      read += read(exchange, List.of(request));
    }
    long nanos = System.nanoTime() - start;
    requireAll(read);
    return nanos;
  }

  /** Reads the first block repeatedly. */
  void readAgain(ExecutorExchange exchange, String owner, int times, Histogram histogram)
      throws IOException {
    List<BlockRequest> first = requests(owner).subList(0, 1);
    for (int i = 0; i < times; i++) {
      long start = System.nanoTime();
      long read = read(exchange, first);
      Histograms.record(histogram, System.nanoTime() - start);
      if (read != bytes) {
        throw new IOException("read " + read + " bytes of a block of " + bytes);
      }
    }
  }

  private static long read(ExecutorExchange exchange, List<BlockRequest> requests)
      throws IOException {
    long read = 0;
    try (ChunkReader reader = exchange.read(requests, FetchListener.NONE)) {
      while (reader.next()) {
        long first = Memory.getLong(reader.address());
        long expected = reader.request().key().mapId() << 32 | reader.partition();
        if (first != expected) {
          throw new IOException("a block begins with " + first + " instead of " + expected);
        }
        read += reader.length();
      }
    }
    return read;
  }

  private void requireAll(long read) throws IOException {
    if (read != allBytes()) {
      throw new IOException("read " + read + " of " + allBytes() + " bytes");
    }
  }
}
