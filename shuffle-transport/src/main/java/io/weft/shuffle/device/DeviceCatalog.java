package io.weft.shuffle.device;

import io.weft.device.cuda.TieredMemory;
import io.weft.shuffle.store.BlockKey;
import java.io.IOException;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/** The map outputs of this executor that its device tiers keep. Thread-safe. */
public final class DeviceCatalog implements AutoCloseable {
  private final Map<Integer, Map<Long, DeviceOutput>> shuffles = new HashMap<>();

  /** One bit for each shuffle that was removed and that no task here has begun to write since. */
  private final BitSet removed = new BitSet();

  private boolean closed;

  /**
   * Publishes an output and takes ownership.
   *
   * @throws IOException if its shuffle was removed here meanwhile; then the output is closed
   * @throws IllegalStateException if it was published before; then the output is closed
   */
  public void publish(DeviceOutput output) throws IOException {
    BlockKey key = output.key();
    boolean late;
    boolean first = false;
    synchronized (this) {
      late = closed || removed.get(key.shuffleId());
      if (!late) {
        Map<Long, DeviceOutput> shuffle =
            shuffles.computeIfAbsent(key.shuffleId(), id -> new HashMap<>());
        first = shuffle.putIfAbsent(key.mapId(), output) == null;
      }
    }
    if (first) {
      return;
    }
    output.close();
    if (late) {
      throw new IOException(key + " was not published: its shuffle was removed meanwhile");
    }
    throw new IllegalStateException(key + " was published before");
  }

  /** Accepts outputs of a shuffle that a task begins to write: Spark may compute it again. */
  public synchronized void begin(int shuffleId) {
    removed.clear(shuffleId);
  }

  /** Whether outputs of a shuffle are refused, because it was removed here. */
  public synchronized boolean wasRemoved(int shuffleId) {
    return removed.get(shuffleId);
  }

  /** An output of this catalog. */
  synchronized Optional<DeviceOutput> find(BlockKey key) {
    return Optional.ofNullable(shuffles.getOrDefault(key.shuffleId(), Map.of()).get(key.mapId()));
  }

  /** Whether the catalog has an output. */
  public boolean contains(BlockKey key) {
    return find(key).isPresent();
  }

  /** Removes one output, as {@link #removeShuffle} does. Does nothing if it is missing. */
  public void remove(BlockKey key) {
    DeviceOutput taken;
    synchronized (this) {
      taken = shuffles.getOrDefault(key.shuffleId(), Map.of()).get(key.mapId());
      if (taken != null) {
        shuffles.get(key.shuffleId()).remove(key.mapId());
      }
    }
    if (taken != null) {
      taken.close();
    }
  }

  /** The keys of all outputs, sorted by shuffle and map. */
  public synchronized List<BlockKey> keys() {
    List<BlockKey> keys = new ArrayList<>();
    shuffles.forEach((id, maps) -> maps.keySet().forEach(map -> keys.add(new BlockKey(id, map))));
    keys.sort(Comparator.comparingInt(BlockKey::shuffleId).thenComparingLong(BlockKey::mapId));
    return keys;
  }

  /** Frees a shuffle's memory. Memory that readers use is freed after their last use. */
  public void removeShuffle(int shuffleId) {
    Map<Long, DeviceOutput> taken;
    synchronized (this) {
      removed.set(shuffleId);
      taken = shuffles.remove(shuffleId);
    }
    if (taken != null) {
      taken.values().forEach(DeviceOutput::close);
    }
  }

  /** Frees everything and refuses new outputs. */
  @Override
  public void close() {
    List<Integer> all;
    synchronized (this) {
      closed = true;
      all = new ArrayList<>(shuffles.keySet());
    }
    all.forEach(this::removeShuffle);
  }

  /**
   * The output of one map task attempt on the device: tables, each split into the partitions of the
   * shuffle. Owns their memory. Immutable and thread-safe.
   */
  public static final class DeviceOutput implements AutoCloseable {
    private final BlockKey key;
    private final List<Unit> units;

    /**
     * A table that was split into partitions, in one block of memory.
     *
     * @param memory of all partitions
     * @param layouts of each partition
     * @param offsets of each partition in the memory; must not be changed
     */
    @SuppressWarnings("ArrayRecordComponent") // Never compared.
    public record Unit(TieredMemory memory, List<TableLayout> layouts, long[] offsets) {}

    /**
     * The rows of a partition from one table.
     *
     * @param memory that has the rows
     * @param offset of the rows in the memory
     * @param layout of the rows; it has at least one row
     */
    record Slice(TieredMemory memory, long offset, TableLayout layout) {}

    /** Creates an output of these tables and takes ownership of them. */
    public DeviceOutput(BlockKey key, List<Unit> units) {
      this.key = key;
      this.units = List.copyOf(units);
    }

    /** The key of the map output. */
    public BlockKey key() {
      return key;
    }

    /** The tables of the output. */
    List<Unit> units() {
      return units;
    }

    /** The rows of a partition, in their order. */
    List<Slice> slices(int partition) {
      List<Slice> slices = new ArrayList<>();
      for (Unit unit : units) {
        TableLayout layout = unit.layouts().get(partition);
        if (layout.rows() > 0) {
          slices.add(new Slice(unit.memory(), unit.offsets()[partition], layout));
        }
      }
      return slices;
    }

    /** Bytes of the partition's tables. */
    public long bytes(int partition) {
      return slices(partition).stream().mapToLong(slice -> slice.layout().bytes()).sum();
    }

    /** Frees the memory. Memory that readers use is freed after their last use. */
    @Override
    public void close() {
      units.forEach(unit -> unit.memory().close());
    }
  }
}
