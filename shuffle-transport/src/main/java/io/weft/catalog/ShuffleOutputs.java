package io.weft.catalog;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Stream;

/**
 * This executor's outputs of one shuffle, from its first map task to its removal. If Spark runs the
 * shuffle again after its removal, a new object is used. Thread-safe.
 */
final class ShuffleOutputs {
  private final int shuffleId;
  private final ConcurrentHashMap<Long, OwnedOutput> outputs = new ConcurrentHashMap<>();

  /** The map ids of {@link #outputs} and of outputs that are being published. */
  private final Set<Long> reserved = ConcurrentHashMap.newKeySet();

  @GuardedBy("this")
  private int holds;

  @GuardedBy("this")
  private boolean removed;

  ShuffleOutputs(int shuffleId) {
    this.shuffleId = shuffleId;
  }

  int shuffleId() {
    return shuffleId;
  }

  /** Returns an output, or null if there is none. */
  OwnedOutput get(long mapId) {
    return outputs.get(mapId);
  }

  /** The keys of the current outputs. */
  Stream<BlockKey> keys() {
    return outputs.keySet().stream().map(mapId -> new BlockKey(shuffleId, mapId));
  }

  /** Reserves a map id, so that only one attempt publishes it. Throws if it is reserved. */
  void reserve(BlockKey key) {
    if (!reserved.add(key.mapId())) {
      throw new IllegalStateException(key + " was published before, or is being published");
    }
  }

  /** Releases the reservation of an output that was not published. */
  void giveUp(BlockKey key) {
    reserved.remove(key.mapId());
  }

  /** Adds a reserved output. Returns false if the shuffle was removed. */
  synchronized boolean add(OwnedOutput output) {
    if (removed) {
      return false;
    }
    outputs.put(output.index().key().mapId(), output);
    return true;
  }

  /** Removes and returns an output, or returns null if there is none. */
  OwnedOutput take(long mapId) {
    OwnedOutput taken = outputs.remove(mapId);
    if (taken != null) {
      reserved.remove(mapId);
    }
    return taken;
  }

  /** Removes and returns all outputs. Rejects new ones from now on. */
  synchronized List<OwnedOutput> takeAll() {
    removed = true;
    List<OwnedOutput> all = new ArrayList<>(outputs.values());
    outputs.clear();
    return all;
  }

  synchronized boolean isRemoved() {
    return removed;
  }

  synchronized void retain() {
    holds++;
  }

  synchronized void release() {
    holds--;
  }

  /** Whether readers in this process, or streams to peers, use the outputs now. */
  synchronized boolean isHeld() {
    return holds > 0;
  }
}
