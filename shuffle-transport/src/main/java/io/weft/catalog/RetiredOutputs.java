package io.weft.catalog;

import static io.weft.metrics.ExchangeCounter.BYTES_FREED;
import static io.weft.metrics.ExchangeCounter.BYTES_RETIRED;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.weft.memory.SpillPolicy;
import io.weft.metrics.ExchangeCounters;
import java.util.List;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.function.IntPredicate;

/**
 * Removed outputs that may still have readers. Each call to reclaim frees those without readers.
 * Thread-safe.
 */
final class RetiredOutputs {
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
   * Frees all outputs without a reader in this process. Only for an arena that no longer allocates:
   * readers in other processes keep their mappings.
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

    /** Frees the memory once. A second thread waits for the first, because it needs the memory. */
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
