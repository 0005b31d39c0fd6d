package io.weft.catalog;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Stream;

/**
 * This executor's outputs of one shuffle, from its first map task to its removal. If Spark runs the
 * shuffle again after removing it, that is another object. Thread-safe.
 */
final class ShuffleOutputs {
  private final int shuffleId;
  private final ConcurrentHashMap<Long, OwnedOutput> outputs = new ConcurrentHashMap<>();

  /** The map ids of {@link #outputs} and of what is being published. */
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

  /** Null if there is none. */
  OwnedOutput get(long mapId) {
    return outputs.get(mapId);
  }

  /** The outputs that are here now. */
  Stream<BlockKey> keys() {
    return outputs.keySet().stream().map(mapId -> new BlockKey(shuffleId, mapId));
  }

  /** Lets one of those who would publish an output do so, until it gives up. */
  void reserve(BlockKey key) {
    if (!reserved.add(key.mapId())) {
      throw new IllegalStateException(key + " was published before, or is being published");
    }
  }

  /** The output was not published after all. */
  void giveUp(BlockKey key) {
    reserved.remove(key.mapId());
  }

  /** Adds an output that was reserved; false if the shuffle was removed meanwhile. */
  synchronized boolean add(OwnedOutput output) {
    if (removed) {
      return false;
    }
    outputs.put(output.index().key().mapId(), output);
    return true;
  }

  /** Takes an output out; null if there is none. */
  OwnedOutput take(long mapId) {
    OwnedOutput taken = outputs.remove(mapId);
    if (taken != null) {
      reserved.remove(mapId);
    }
    return taken;
  }

  /** Takes all outputs out and lets none in any more. */
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

  /** Whether readers in this process, or transfers to others, use the outputs now. */
  synchronized boolean isHeld() {
    return holds > 0;
  }
}
