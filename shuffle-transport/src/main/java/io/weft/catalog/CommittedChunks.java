package io.weft.catalog;

import io.weft.encryption.ChunkName;
import io.weft.memory.Extent;
import io.weft.memory.SharedArena;
import java.util.Arrays;

/** Collects the chunks of a map output in commit order and sorts them by partition at the end. */
final class CommittedChunks {
  private final long[] partitionBytes;
  private final int[] partitionChunks;
  private int count;
  private int[] partition = new int[16];
  private int[] rows = new int[16];
  private int[] checksum = new int[16];
  private long[] bytes = new long[16];
  private Extent[] extents = new Extent[16];

  CommittedChunks(int partitions) {
    partitionBytes = new long[partitions];
    partitionChunks = new int[partitions];
  }

  /**
   * Adds a chunk and takes ownership of its extent.
   *
   * @param usedBytes of the plain chunk
   * @param sum checksum of the stored bytes if they are on disk
   */
  void add(
      int toPartition, Extent extent, long usedBytes, int rowCount, int sum, boolean isEncrypted) {
    if (count == partition.length) {
      grow();
    }
    partition[count] = toPartition;
    rows[count] = rowCount;
    checksum[count] = sum;
    bytes[count] = isEncrypted ? usedBytes | MapOutput.SEALED : usedBytes;
    extents[count] = extent;
    count++;
    partitionBytes[toPartition] += usedBytes;
    partitionChunks[toPartition]++;
  }

  private void grow() {
    int capacity = Math.multiplyExact(count, 2);
    partition = Arrays.copyOf(partition, capacity);
    rows = Arrays.copyOf(rows, capacity);
    checksum = Arrays.copyOf(checksum, capacity);
    bytes = Arrays.copyOf(bytes, capacity);
    extents = Arrays.copyOf(extents, capacity);
  }

  int partitions() {
    return partitionBytes.length;
  }

  long[] partitionBytes() {
    return partitionBytes.clone();
  }

  /** The name of the next chunk of a partition, by its position after sorting. */
  ChunkName nextName(BlockKey key, int ofPartition) {
    return new ChunkName(key.shuffleId(), key.mapId(), ofPartition, partitionChunks[ofPartition]);
  }

  /** Sorts the chunks by partition. Keeps the order within each partition. */
  OwnedOutput sorted(BlockKey key, long segmentBytes, SharedArena arena) {
    int[] firstChunk = firstChunks();
    int[] next = firstChunk.clone();
    Extent[] sorted = new Extent[count];
    int[] segment = new int[count];
    int[] sortedRows = new int[count];
    int[] sortedChecksum = new int[count];
    long[] offset = new long[count];
    long[] length = new long[count];
    for (int i = 0; i < count; i++) {
      int to = next[partition[i]]++;
      sorted[to] = extents[i];
      segment[to] = extents[i].segment();
      offset[to] = extents[i].offset();
      sortedRows[to] = rows[i];
      sortedChecksum[to] = checksum[i];
      length[to] = bytes[i];
    }
    MapOutput index =
        new MapOutput(
            key, segmentBytes, firstChunk, segment, sortedRows, sortedChecksum, offset, length);
    return new OwnedOutput(arena, index, sorted);
  }

  private int[] firstChunks() {
    int[] first = new int[partitions() + 1];
    for (int p = 0; p < partitions(); p++) {
      first[p + 1] = first[p] + partitionChunks[p];
    }
    return first;
  }

  /** Frees all memory. */
  void free(SharedArena arena) {
    for (int i = 0; i < count; i++) {
      arena.free(extents[i]);
    }
    count = 0;
  }
}
