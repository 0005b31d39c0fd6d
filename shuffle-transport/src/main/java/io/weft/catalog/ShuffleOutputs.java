package io.weft.catalog;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ConcurrentHashMap;

/**
 * This executor's outputs of one shuffle, from its first map task to its removal. If Spark runs the
 * shuffle again after removing it, that is another object. Thread-safe.
 */
final class ShuffleOutputs {
  private final int shuffleId;
  private final ConcurrentHashMap<Long, OwnedOutput> outputs = new ConcurrentHashMap<>();

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

  /** Adds an output; false if the shuffle was removed since its map task began. */
  synchronized boolean add(OwnedOutput output) {
    if (removed) {
      return false;
    }
    OwnedOutput before = outputs.putIfAbsent(output.index().key().mapId(), output);
    if (before != null) {
      throw new IllegalStateException(output.index().key() + " was published before");
    }
    return true;
  }

  /** Takes an output out; null if there is none. */
  OwnedOutput take(long mapId) {
    return outputs.remove(mapId);
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
