package io.weft.deviceblocks;

import io.weft.catalog.BlockKey;
import java.io.IOException;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/** The map outputs of this executor that lie on its device. Thread-safe. */
public final class DeviceCatalog implements AutoCloseable {
  private final Map<Integer, Map<Long, DeviceOutput>> shuffles = new HashMap<>();
  private final BitSet removed = new BitSet();
  private boolean closed;

  /**
   * Makes an output visible and takes it over.
   *
   * @throws IOException if its shuffle was removed here meanwhile; it is closed then
   * @throws IllegalStateException if it was published before; it is closed then
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

  /** An output that is here now. */
  synchronized Optional<DeviceOutput> find(BlockKey key) {
    return Optional.ofNullable(shuffles.getOrDefault(key.shuffleId(), Map.of()).get(key.mapId()));
  }

  /** Whether an output is here now. */
  public boolean contains(BlockKey key) {
    return find(key).isPresent();
  }

  /** Gives one output back, as {@link #removeShuffle} does; nothing if it is not here. */
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

  /** The outputs that are here now, in order. */
  public synchronized List<BlockKey> keys() {
    List<BlockKey> keys = new ArrayList<>();
    shuffles.forEach((id, maps) -> maps.keySet().forEach(map -> keys.add(new BlockKey(id, map))));
    keys.sort(Comparator.comparingInt(BlockKey::shuffleId).thenComparingLong(BlockKey::mapId));
    return keys;
  }

  /** Gives a shuffle's memory back; readers keep what they use until they are through. */
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

  /** Gives everything back; nothing can be published any more. */
  @Override
  public void close() {
    List<Integer> all;
    synchronized (this) {
      closed = true;
      all = new ArrayList<>(shuffles.keySet());
    }
    all.forEach(this::removeShuffle);
  }
}
