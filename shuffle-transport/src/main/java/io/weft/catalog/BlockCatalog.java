package io.weft.catalog;

import static io.weft.metrics.ExchangeCounter.BYTES_PUBLISHED;
import static io.weft.metrics.ExchangeCounter.BYTES_SPILLED;
import static io.weft.metrics.ExchangeCounter.OUTPUTS_PUBLISHED;

import io.weft.encryption.ChunkSealer;
import io.weft.memory.SharedArena;
import io.weft.metrics.ExchangeCounters;
import java.io.IOException;
import java.nio.file.Path;
import java.util.BitSet;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.IntPredicate;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The map outputs of this executor. Publishing makes one visible in two places: here, for this
 * process and for peers that ask over the network, and as an index file in the executor's folder,
 * for peers on this host.
 *
 * <p>Removing deletes the index files first and looks at the leases after: a peer takes its lease
 * before it opens an index, so it either finds the index gone or is seen. Memory still in use then
 * waits until nobody reads it. Thread-safe.
 */
public final class BlockCatalog implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(BlockCatalog.class);

  private final Path folder;
  private final IndexFiles indexes;
  private final SharedArena arena;
  private final long segmentBytes;
  private final boolean checksums;
  private final Optional<ChunkSealer> sealer;
  private final ExchangeCounters counters;
  private final RetiredOutputs retired;
  private final ConcurrentHashMap<Integer, ShuffleOutputs> shuffles = new ConcurrentHashMap<>();

  /**
   * One bit for each shuffle that was ever removed, under its own monitor: what comes late for one
   * is not taken in.
   */
  private final BitSet removed = new BitSet();

  private volatile boolean closed;

  /**
   * Starts empty.
   *
   * @param folder of this executor, where index files go; not owned
   * @param localDirs where they go when it is full
   * @param arena that chunks are allocated from; not owned, but asked to call here under pressure
   * @param segmentBytes size of the arena's ordinary segments
   * @param checksums whether chunks on disk get a checksum, to be verified when they are read
   * @param sealer seals chunks that do not fit into shared memory, for an arena with private
   *     memory; empty for one that has none
   * @param leased whether a living reader of another process holds a lease on a shuffle
   */
  public BlockCatalog(
      Path folder,
      List<Path> localDirs,
      SharedArena arena,
      long segmentBytes,
      boolean checksums,
      Optional<ChunkSealer> sealer,
      IntPredicate leased,
      ExchangeCounters counters) {
    this.folder = folder;
    this.indexes = new IndexFiles(folder, localDirs, arena.names());
    this.arena = arena;
    this.segmentBytes = segmentBytes;
    this.checksums = checksums;
    this.sealer = sealer;
    this.counters = counters;
    this.retired = new RetiredOutputs(leased, counters);
    arena.onPressure(retired::reclaim);
  }

  /** Opens a map task's output of so many partitions. The caller closes it. */
  public MapOutputWriter newMapOutput(BlockKey key, int partitions) {
    requireOpen();
    ShuffleOutputs shuffle = shuffles.computeIfAbsent(key.shuffleId(), ShuffleOutputs::new);
    return new MapOutputWriter(this, arena, shuffle, key, partitions);
  }

  /**
   * Opens an output that another executor made and this one takes over. The caller closes it.
   *
   * @throws IOException if its shuffle was removed here: nobody would remove it a second time
   */
  public MapOutputWriter adopt(BlockKey key, int partitions) throws IOException {
    synchronized (removed) {
      if (removed.get(key.shuffleId())) {
        throw new IOException(key + " is not taken over: its shuffle was removed here");
      }
      return newMapOutput(key, partitions);
    }
  }

  /** What is published here now, in no order. */
  public List<BlockKey> outputs() {
    return shuffles.values().stream().flatMap(ShuffleOutputs::keys).toList();
  }

  /** Whether an output is published here now. */
  public boolean contains(BlockKey key) {
    ShuffleOutputs shuffle = shuffles.get(key.shuffleId());
    return shuffle != null && shuffle.get(key.mapId()) != null;
  }

  /** Holds what there is of a shuffle here, which may be nothing. The caller closes it. */
  public OwnedBlocks hold(int shuffleId) {
    requireOpen();
    ShuffleOutputs shuffle = shuffles.get(shuffleId);
    if (shuffle != null) {
      shuffle.retain();
    }
    return new OwnedBlocks(shuffle, this);
  }

  /** Frees a shuffle's outputs, at once or when the last reader is gone. */
  public void removeShuffle(int shuffleId) {
    ShuffleOutputs shuffle;
    synchronized (removed) {
      removed.set(shuffleId);
      shuffle = shuffles.remove(shuffleId);
    }
    if (shuffle != null) {
      retire(shuffle, shuffle.takeAll());
    }
    retired.reclaim();
  }

  /** Frees one output, at once or when the last reader of its shuffle is gone. */
  public void removeMapOutput(BlockKey key) {
    ShuffleOutputs shuffle = shuffles.get(key.shuffleId());
    OwnedOutput output = shuffle == null ? null : shuffle.take(key.mapId());
    if (output != null) {
      retire(shuffle, List.of(output));
    }
  }

  /** Frees what was removed and has lost its last reader since. Quick when nothing was. */
  public void reclaim() {
    retired.reclaim();
  }

  /** Arena bytes that wait for readers before they can be freed. */
  public long retiredBytes() {
    return retired.bytes();
  }

  /**
   * Frees everything that nobody in this process reads; the rest is freed when its readers here are
   * done. Peers that have the memory mapped can go on reading it. Nothing can be written any more.
   */
  @Override
  public void close() {
    closed = true;
    // What peers still read is freed below, and must not be handed out again.
    arena.refuse();
    shuffles.keySet().forEach(this::removeShuffle);
    retired.reclaimLeased();
  }

  boolean isClosed() {
    return closed;
  }

  boolean checksums() {
    return checksums;
  }

  Optional<ChunkSealer> sealer() {
    return sealer;
  }

  long segmentBytes() {
    return segmentBytes;
  }

  /** Makes an output visible; where that fails nothing of it is, and it still owns its memory. */
  void publish(ShuffleOutputs shuffle, OwnedOutput output) throws IOException {
    requireOpen();
    BlockKey key = output.index().key();
    // Before the index is written, which would replace, and on failure delete, another one's.
    shuffle.reserve(key);
    boolean added = false;
    try {
      indexes.write(output.index());
      added = shuffle.add(output);
    } finally {
      if (!added) {
        deleteIndex(key);
        shuffle.giveUp(key);
      }
    }
    if (!added) {
      throw new IOException(key + " was not published: its shuffle was removed meanwhile");
    }
    counters.increment(OUTPUTS_PUBLISHED);
    counters.add(BYTES_PUBLISHED, output.bytes());
    counters.add(BYTES_SPILLED, output.spilledBytes());
  }

  /** A hold on a shuffle ended; if it was removed before, its memory may be free to go now. */
  void reclaimAfter(ShuffleOutputs shuffle) {
    if (closed) {
      retired.reclaimLeased();
    } else {
      retired.reclaim(shuffle);
    }
  }

  private void retire(ShuffleOutputs shuffle, List<OwnedOutput> outputs) {
    outputs.forEach(output -> deleteIndex(output.index().key()));
    retired.retire(shuffle, outputs);
  }

  private void deleteIndex(BlockKey key) {
    try {
      indexes.delete(key);
    } catch (IOException e) {
      LOG.warn("The index of {} in {} was not deleted: {}", key, folder, e.toString());
    }
  }

  private void requireOpen() {
    if (closed) {
      throw new IllegalStateException(
          "the exchange in " + Objects.requireNonNull(folder) + " is closed");
    }
  }
}
