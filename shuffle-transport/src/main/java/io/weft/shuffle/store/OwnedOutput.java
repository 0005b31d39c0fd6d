package io.weft.shuffle.store;

import io.weft.memory.Extent;
import io.weft.memory.MemoryKind;
import io.weft.memory.SharedArena;
import io.weft.shuffle.store.ShuffleHold.LocatedOutput;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicBoolean;

/** A published map output of this executor, with the memory it owns. Thread-safe. */
public final class OwnedOutput {
  private final SharedArena arena;
  private final LocatedOutput located;
  private final Extent[] extents;

  /**
   * Checksums of chunks in memory, computed at the first request. Null before any request, because
   * readers on this host make none. Racing threads compute the same one.
   */
  private volatile int[] checksum;

  private final long bytes;
  private final long spilledBytes;

  OwnedOutput(SharedArena arena, MapOutput index, Extent[] extents) {
    this.arena = arena;
    this.extents = extents;
    SortedMap<Integer, Long> addresses = new TreeMap<>();
    long sum = 0;
    long onDisk = 0;
    for (int chunk = 0; chunk < extents.length; chunk++) {
      if (chunk == 0 || extents[chunk].segment() != extents[chunk - 1].segment()) {
        addresses.put(extents[chunk].segment(), extents[chunk].address() - extents[chunk].offset());
      }
      sum += extents[chunk].length();
      onDisk += extents[chunk].kind() == MemoryKind.DISK ? extents[chunk].length() : 0;
    }
    this.located = new LocatedOutput(index, addresses);
    this.bytes = sum;
    this.spilledBytes = onDisk;
  }

  /** The index of the output. */
  public MapOutput index() {
    return located.index();
  }

  /** The stored bytes of a chunk, encrypted if the index says so. Read-only. */
  public ByteBuffer view(int chunk) {
    ByteBuffer whole = arena.view(extents[chunk]);
    return whole.slice(0, (int) index().storedBytes(chunk)).asReadOnlyBuffer();
  }

  /**
   * The checksum of the stored bytes of a chunk. Computed once: when the chunk was written to disk,
   * or at the first call. Computing takes about as long as reading the bytes.
   */
  public int checksum(int chunk) {
    int sum = index().checksum(chunk);
    if (sum != Checksum.NONE) {
      return sum;
    }
    int[] known = checksum;
    if (known == null) {
      known = new int[extents.length];
      checksum = known;
    }
    if (known[chunk] == Checksum.NONE) {
      known[chunk] = Checksum.of(view(chunk));
    }
    return known[chunk];
  }

  LocatedOutput located() {
    return located;
  }

  /** The arena bytes of this output. */
  long bytes() {
    return bytes;
  }

  /** The part of {@link #bytes} that is on disk because shared memory was full. */
  long spilledBytes() {
    return spilledBytes;
  }

  /** Frees the memory. Must be called only once. */
  void free() {
    for (Extent extent : extents) {
      arena.free(extent);
    }
  }

  /** A hold on this executor's blocks of one shuffle. Thread-safe. */
  public static final class OwnedHold implements ShuffleHold {
    private final ShuffleOutputs shuffle;
    private final BlockCatalog catalog;
    private final AtomicBoolean open = new AtomicBoolean(true);

    OwnedHold(ShuffleOutputs shuffle, BlockCatalog catalog) {
      this.shuffle = shuffle;
      this.catalog = catalog;
    }

    /**
     * Finds a map output, with access to its memory as buffers.
     *
     * @throws IOException if there is no output with this key
     */
    public OwnedOutput owned(BlockKey key) throws IOException {
      OwnedOutput found = shuffle == null ? null : shuffle.get(key.mapId());
      if (found == null) {
        throw new IOException(key + " is not here: it was removed, or never published");
      }
      return found;
    }

    @Override
    public LocatedOutput output(BlockKey key) throws IOException {
      return owned(key).located();
    }

    @Override
    public void close() {
      if (shuffle != null && open.getAndSet(false)) {
        shuffle.release();
        catalog.reclaimAfter(shuffle);
      }
    }
  }
}
