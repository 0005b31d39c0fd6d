package io.weft.shuffle.store;

import static io.weft.shuffle.peer.ExchangeCounter.BYTES_PUBLISHED;
import static io.weft.shuffle.peer.ExchangeCounter.BYTES_SPILLED;
import static io.weft.shuffle.peer.ExchangeCounter.OUTPUTS_PUBLISHED;

import io.weft.memory.Extent;
import io.weft.memory.SharedArena;
import io.weft.shuffle.peer.ExchangeCounters;
import io.weft.shuffle.peer.TrafficReport.Figure;
import io.weft.shuffle.store.OwnedOutput.OwnedHold;
import io.weft.shuffle.store.ShuffleOutputs.RetiredOutputs;
import java.io.IOException;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.BitSet;
import java.util.Collection;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.IntPredicate;
import java.util.stream.Collectors;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The map outputs of this executor. Publishing makes an output visible in two places: in this
 * catalog, for this process and for peers on the network, and as an index file in the executor's
 * folder, for peers on this host.
 *
 * <p>Removing deletes the index files first and checks the leases afterwards. A peer takes its
 * lease before it opens an index. So either the peer finds no index, or this executor finds the
 * lease. Memory that is still in use is freed after its last reader. Thread-safe.
 */
public final class BlockCatalog implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(BlockCatalog.class);

  private final Path folder;
  private final IndexFiles indexes;
  private final SharedArena arena;
  private final long segmentBytes;
  private final boolean checksums;
  private final Optional<ChunkEncryptor> encryptor;
  private final ExchangeCounters counters;
  private final RetiredOutputs retired;
  private final ConcurrentHashMap<Integer, ShuffleOutputs> shuffles = new ConcurrentHashMap<>();

  /**
   * One bit for each shuffle that was removed and that no task here has written since. Guarded by
   * its own monitor. Late migrated outputs of removed shuffles are rejected.
   */
  private final BitSet removed = new BitSet();

  private volatile boolean closed;
  private volatile OutputListener listener = (output, own) -> {};

  /** Learns of outputs that appear here. Must not block. */
  @FunctionalInterface
  public interface OutputListener {
    /**
     * Called after an output is visible.
     *
     * @param own whether a task of this executor wrote it, so it was not migrated or adopted
     */
    void appeared(OwnedOutput output, boolean own);
  }

  /**
   * Starts empty.
   *
   * @param folder of this executor, for index files; not owned
   * @param localDirs for index files when the folder is full
   * @param arena memory for chunks; not owned. The catalog registers a hook for memory pressure
   * @param segmentBytes size of the arena's regular segments
   * @param checksums whether chunks on disk get a checksum, which readers verify
   * @param encryptor encrypts chunks that do not fit into shared memory; empty for an arena without
   *     private memory
   * @param leased whether a live reader in another process holds a lease on a shuffle
   */
  public BlockCatalog(
      Path folder,
      List<Path> localDirs,
      SharedArena arena,
      long segmentBytes,
      boolean checksums,
      Optional<ChunkEncryptor> encryptor,
      IntPredicate leased,
      ExchangeCounters counters) {
    this.folder = folder;
    this.indexes = new IndexFiles(folder, localDirs, arena.names());
    this.arena = arena;
    this.segmentBytes = segmentBytes;
    this.checksums = checksums;
    this.encryptor = encryptor;
    this.counters = counters;
    this.retired = new RetiredOutputs(leased, counters);
    arena.onPressure(retired::reclaim);
  }

  /** Opens a map task's output with this number of partitions. The caller closes it. */
  public MapOutputWriter newMapOutput(BlockKey key, int partitions) {
    synchronized (removed) {
      removed.clear(key.shuffleId()); // Spark computes it again, and will remove it again.
    }
    return newMapOutput(key, partitions, false);
  }

  private MapOutputWriter newMapOutput(BlockKey key, int partitions, boolean migrated) {
    requireOpen();
    ShuffleOutputs shuffle = shuffles.computeIfAbsent(key.shuffleId(), ShuffleOutputs::new);
    return new MapOutputWriter(this, arena, shuffle, key, partitions, migrated);
  }

  /**
   * Opens an output that is migrated from another executor. The caller closes it.
   *
   * @throws IOException if its shuffle was removed here, because no later removal would free it
   */
  public MapOutputWriter adopt(BlockKey key, int partitions) throws IOException {
    synchronized (removed) {
      if (removed.get(key.shuffleId())) {
        throw new IOException(key + " is not migrated: its shuffle was removed here");
      }
      return newMapOutput(key, partitions, true);
    }
  }

  /**
   * Publishes an output whose memory was taken over from a dead executor on this host.
   *
   * @param index of the output in this executor's segments
   * @param extents of its chunks. This catalog owns them after a return of true
   * @return false if the output is published here already, or its shuffle was removed here
   * @throws IOException if the index cannot be written
   */
  boolean adopt(MapOutput index, Extent[] extents) throws IOException {
    BlockKey key = index.key();
    ShuffleOutputs shuffle;
    synchronized (removed) {
      if (removed.get(key.shuffleId()) || contains(key)) {
        return false;
      }
      requireOpen();
      shuffle = shuffles.computeIfAbsent(key.shuffleId(), ShuffleOutputs::new);
    }
    return show(shuffle, new OwnedOutput(arena, index, extents), false);
  }

  /** Whether a shuffle was removed here, and no task of this executor has written it since. */
  public boolean wasRemoved(int shuffleId) {
    synchronized (removed) {
      return removed.get(shuffleId);
    }
  }

  /** Sets the listener for outputs that appear here, published, migrated or adopted. */
  public void onOutput(OutputListener newListener) {
    listener = newListener;
  }

  /** The published outputs, in no order. */
  public List<BlockKey> outputs() {
    return shuffles.values().stream().flatMap(ShuffleOutputs::keys).toList();
  }

  /** Whether an output is published here now. */
  public boolean contains(BlockKey key) {
    ShuffleOutputs shuffle = shuffles.get(key.shuffleId());
    return shuffle != null && shuffle.get(key.mapId()) != null;
  }

  /** Holds this executor's blocks of a shuffle, which may be none. The caller closes the hold. */
  public OwnedHold hold(int shuffleId) {
    requireOpen();
    ShuffleOutputs shuffle = shuffles.get(shuffleId);
    if (shuffle != null) {
      shuffle.retain();
    }
    return new OwnedHold(shuffle, this);
  }

  /** Frees a shuffle's outputs, at once or after the last reader. */
  public void removeShuffle(int shuffleId) {
    ShuffleOutputs shuffle;
    synchronized (removed) {
      removed.set(shuffleId);
      shuffle = shuffles.remove(shuffleId);
    }
    if (shuffle != null) {
      retire(shuffle, shuffle.removeAll());
    }
    retired.reclaim();
  }

  /** Frees outputs, at once or after the last readers of their shuffles. Ignores unknown ones. */
  public void removeMapOutputs(Collection<BlockKey> keys) {
    keys.stream()
        .collect(Collectors.groupingBy(BlockKey::shuffleId))
        .forEach(
            (id, ofShuffle) -> {
              ShuffleOutputs shuffle = shuffles.get(id);
              if (shuffle != null) {
                retire(shuffle, shuffle.removeAll(ofShuffle));
              }
            });
  }

  /** Frees removed outputs without readers. Fast if there are none. */
  public void reclaim() {
    retired.reclaim();
  }

  /** The arena bytes of removed outputs that still have readers. */
  public long retiredBytes() {
    return retired.bytes();
  }

  /**
   * Frees all outputs without a reader in this process, and the others after their last reader
   * here. Peers can still read memory that they have mapped. Nothing can be written afterwards.
   */
  @Override
  public void close() {
    closed = true;
    // Memory that peers still read is freed below and must not be allocated again.
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

  /** Encrypts chunks that leave memory; empty if disks are not encrypted. */
  public Optional<ChunkEncryptor> encryptor() {
    return encryptor;
  }

  long segmentBytes() {
    return segmentBytes;
  }

  /**
   * Makes an output visible. If that fails, no part is visible and the output still owns its
   * memory.
   *
   * @param own whether a task of this executor wrote it
   */
  void publish(ShuffleOutputs shuffle, OwnedOutput output, boolean own) throws IOException {
    if (!show(shuffle, output, own)) {
      throw new IOException(
          output.index().key() + " was not published: its shuffle was removed meanwhile");
    }
    counters.increment(OUTPUTS_PUBLISHED);
    counters.add(BYTES_PUBLISHED, output.bytes());
    counters.add(BYTES_SPILLED, output.spilledBytes());
    counters.traffic().add(output.index().key().shuffleId(), Figure.ON_DISK, output.spilledBytes());
  }

  /** Writes the index and adds the output. Returns false if its shuffle was removed meanwhile. */
  private boolean show(ShuffleOutputs shuffle, OwnedOutput output, boolean own) throws IOException {
    requireOpen();
    BlockKey key = output.index().key();
    // Before the index is written: it could replace, and on failure delete, another output's index.
    shuffle.reserve(key);
    boolean added = false;
    try {
      writeIndex(output.index());
      added = shuffle.add(output);
    } finally {
      if (!added) {
        deleteIndex(key);
        shuffle.cancel(key);
      }
    }
    if (added) {
      listener.appeared(output, own);
    }
    return added;
  }

  private void writeIndex(MapOutput index) throws IOException {
    try {
      indexes.write(index);
    } catch (IOException e) {
      // Another thread may have created the folder again meanwhile.
      if (!arena.restoreFolder() && !(e.getCause() instanceof NoSuchFileException)) {
        throw e;
      }
      indexes.write(index);
    }
  }

  /** Called when a hold ends. Frees the memory of the shuffle if it was removed before. */
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
