package io.weft.shuffle.store;

import static io.weft.shuffle.peer.ExchangeCounter.BYTES_FREED;
import static io.weft.shuffle.peer.ExchangeCounter.BYTES_RETIRED;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.weft.memory.SpillPolicy;
import io.weft.shuffle.peer.ExchangeCounters;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.function.IntPredicate;
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
  void cancel(BlockKey key) {
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

  /** Removes and returns those of these outputs that are here. */
  synchronized List<OwnedOutput> removeAll(List<BlockKey> keys) {
    List<OwnedOutput> taken = new ArrayList<>();
    for (BlockKey key : keys) {
      OwnedOutput output = outputs.remove(key.mapId());
      if (output != null) {
        reserved.remove(key.mapId());
        taken.add(output);
      }
    }
    return taken;
  }

  /** Removes and returns all outputs. Rejects new ones from now on. */
  synchronized List<OwnedOutput> removeAll() {
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

  /**
   * Removed outputs that may still have readers. Each call to reclaim frees those without readers.
   * Thread-safe.
   */
  static final class RetiredOutputs {
    private final IntPredicate leased;
    private final ExchangeCounters counters;
    private final ConcurrentLinkedQueue<Retired> queue = new ConcurrentLinkedQueue<>();

    /**
     * Starts empty.
     *
     * @param leased whether a live reader in another process holds a lease on a shuffle; may do I/O
     */
    RetiredOutputs(IntPredicate leased, ExchangeCounters counters) {
      this.leased = leased;
      this.counters = counters;
    }

    /** Frees outputs at once if they have no readers, else keeps them for later. */
    void retire(ShuffleOutputs shuffle, List<OwnedOutput> outputs) {
      if (outputs.isEmpty()) {
        return;
      }
      Retired retired = new Retired(shuffle, outputs);
      queue.add(retired);
      if (!retired.freeUnlessRead(leased)) {
        counters.add(BYTES_RETIRED, retired.bytes);
      }
    }

    /** Frees all outputs without readers. */
    void reclaim() {
      queue.forEach(retired -> retired.freeUnlessRead(leased));
    }

    /** As {@link #reclaim}, for one shuffle only. */
    void reclaim(ShuffleOutputs shuffle) {
      for (Retired retired : queue) {
        if (retired.shuffle == shuffle) {
          retired.freeUnlessRead(leased);
        }
      }
    }

    /**
     * Frees all outputs without a reader in this process. Only for an arena that no longer
     * allocates: readers in other processes keep their mappings.
     */
    void reclaimLeased() {
      queue.forEach(retired -> retired.freeUnlessRead(shuffle -> false));
    }

    /** The arena bytes that wait for readers. */
    long bytes() {
      return queue.stream().mapToLong(retired -> retired.bytes).sum();
    }

    private final class Retired {
      private final ShuffleOutputs shuffle;
      private final List<OwnedOutput> outputs;
      private final long bytes;

      @GuardedBy("this")
      private boolean freed;

      Retired(ShuffleOutputs shuffle, List<OwnedOutput> outputs) {
        this.shuffle = shuffle;
        this.outputs = outputs;
        this.bytes = outputs.stream().mapToLong(OwnedOutput::bytes).sum();
      }

      boolean freeUnlessRead(IntPredicate leased) {
        // Check the holds of this process first, because checking leases lists a folder.
        if (!SpillPolicy.mayFree(shuffle.isHeld(), () -> leased.test(shuffle.shuffleId()))) {
          return false;
        }
        free();
        return true;
      }

      /**
       * Frees the memory once. A second thread waits for the first, because it needs the memory.
       */
      private synchronized void free() {
        if (!freed) {
          freed = true;
          outputs.forEach(OwnedOutput::free);
          queue.remove(this);
          counters.add(BYTES_FREED, bytes);
        }
      }
    }
  }
}
