package io.weft.memory;

import io.weft.memory.ExtentLedger.Granules;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * The budget, free blocks and counters of one kind of memory. Guarded by the arena's lock, except
 * for the files and the growth, which are thread-safe.
 */
final class Tier {
  final MemoryKind kind;
  final String name;
  final long budgetBytes;
  final SegmentFiles files;
  final SingleFlight growth = new SingleFlight();
  final FreeBlocks free = new FreeBlocks();

  int segments;
  long reservedBytes;
  long usedBytes;
  long freshBytes;

  /** The part of {@link #reservedBytes} that does not count in the budget. */
  long exemptBytes;

  /** The part of {@link #reservedBytes} that other arenas had. */
  long adoptedBytes;

  private final String budgetReached;

  private final AtomicBoolean failed = new AtomicBoolean();

  /** The bytes of segments that are being created. */
  private long pendingBytes;

  /** The reason why the last segment was not created; null while none was refused. */
  private String refusal;

  Tier(MemoryKind kind, long budgetBytes, SegmentFiles files) {
    this(kind, kind.toString(), budgetBytes, files);
  }

  /** Creates a tier with a name of its own, for a kind with several tiers. */
  Tier(MemoryKind kind, String name, long budgetBytes, SegmentFiles files) {
    this.kind = kind;
    this.name = name;
    this.budgetBytes = budgetBytes;
    this.files = files;
    this.budgetReached = "its budget of " + Bytes.text(budgetBytes) + " is reached";
  }

  /** Reserves budget for a new segment; false when there is not enough. */
  boolean claim(long bytes) {
    if (reservedBytes - exemptBytes + pendingBytes + bytes > budgetBytes) {
      refusal = budgetReached;
      return false;
    }
    pendingBytes += bytes;
    return true;
  }

  /**
   * The bytes to delete so that {@code bytes} more fit; all of them if the budget is not the limit.
   */
  long shortfall(long bytes) {
    long over = reservedBytes - exemptBytes + pendingBytes + bytes - budgetBytes;
    return over > 0 ? over : bytes;
  }

  void unclaim(long bytes) {
    pendingBytes -= bytes;
  }

  /** Counts a segment that was created under a claim. */
  void added(long bytes) {
    pendingBytes -= bytes;
    reservedBytes += bytes;
    freshBytes += bytes;
    segments++;
  }

  /** Whether a segment of another arena can be added: at most a whole budget of such segments. */
  boolean mayAdopt(long bytes) {
    return adoptedBytes + bytes <= budgetBytes;
  }

  /** Counts a segment of another arena. With the tier's own segments it may exceed the budget. */
  void adopted(Segment segment) {
    segment.adopted = true;
    adoptedBytes += segment.bytes;
    reservedBytes += segment.bytes;
    exemptBytes += segment.exempt ? segment.bytes : 0;
    segments++;
  }

  void removed(Segment segment) {
    reservedBytes -= segment.bytes;
    exemptBytes -= segment.exempt ? segment.bytes : 0;
    adoptedBytes -= segment.adopted ? segment.bytes : 0;
    segments--;
  }

  void refuse(String reason) {
    refusal = reason;
  }

  /** True once, so that only the first failure is logged. */
  boolean firstFailure() {
    return failed.compareAndSet(false, true);
  }

  String refusal() {
    return refusal;
  }

  ArenaStatistics.TierStatistics statistics() {
    return new ArenaStatistics.TierStatistics(reservedBytes, usedBytes, freshBytes, segments);
  }

  /**
   * A text such as "shared memory: 62.0 MiB in use of 64.0 MiB reserved, budget 64.0 MiB (reason)".
   */
  String describe() {
    return name
        + ": "
        + Bytes.text(usedBytes)
        + " in use of "
        + Bytes.text(reservedBytes)
        + " reserved, budget "
        + Bytes.text(budgetBytes)
        + (refusal == null ? "" : " (" + refusal + ")");
  }

  /**
   * The free blocks of one tier, in lists by size class (a segregated fit). Taking and freeing take
   * a bounded number of steps for any number of segments. A few entries of the request's own class
   * are tried, then a block of the first non-empty larger class is split. Free neighbours in a
   * segment are joined at once, so an empty segment is one block again.
   *
   * <p>Not thread-safe: guarded by the arena's lock.
   */
  static final class FreeBlocks {
    /** How many blocks of the request's own class are tried before a larger one is split. */
    private static final int TRIES = 8;

    private final Block[] heads = new Block[SizeClasses.COUNT];
    private final long[] nonEmpty = new long[(SizeClasses.COUNT + Long.SIZE - 1) / Long.SIZE];

    /**
     * Takes a block of exactly that many granules; null when no block is long enough. Blocks of the
     * request's own class after the first few are found only if {@code thorough}.
     */
    Block take(int granules, boolean thorough) {
      int sizeClass = SizeClasses.of(granules);
      Block found = search(heads[sizeClass], granules, thorough ? Integer.MAX_VALUE : TRIES);
      if (found == null) {
        found = anyFrom(sizeClass + 1);
      }
      if (found == null) {
        return null;
      }
      unlink(found);
      shrink(found, granules);
      return found;
    }

    /** Frees the part of an allocated block after its first granules. */
    void shrink(Block block, int granules) {
      if (granules < block.granules) {
        give(block.split(granules));
      }
    }

    /** Frees a block and joins it with its free neighbours. */
    void give(Block block) {
      Block joined = block;
      if (joined.next != null && joined.next.free) {
        unlink(joined.next);
        joined.absorbNext();
      }
      if (joined.previous != null && joined.previous.free) {
        joined = joined.previous;
        unlink(joined);
        joined.absorbNext();
      }
      link(joined);
    }

    /** Removes a free block from the lists. */
    void remove(Block block) {
      unlink(block);
    }

    /** Removes all free blocks of a segment from the lists. */
    void removeAll(Segment segment) {
      for (Block block = segment.first; block != null; block = block.next) {
        if (block.free) {
          unlink(block);
        }
      }
    }

    private static Block search(Block head, int granules, int tries) {
      Block block = head;
      for (int left = tries; block != null && left > 0; left--) {
        if (block.granules >= granules) {
          return block;
        }
        block = block.nextFree;
      }
      return null;
    }

    private Block anyFrom(int sizeClass) {
      int word = sizeClass / Long.SIZE;
      if (word >= nonEmpty.length) {
        return null;
      }
      long bits = nonEmpty[word] & (-1L << sizeClass);
      while (bits == 0) {
        if (++word == nonEmpty.length) {
          return null;
        }
        bits = nonEmpty[word];
      }
      return heads[word * Long.SIZE + Long.numberOfTrailingZeros(bits)];
    }

    private void link(Block block) {
      int sizeClass = SizeClasses.of(block.granules);
      Block head = heads[sizeClass];
      block.free = true;
      block.previousFree = null;
      block.nextFree = head;
      if (head != null) {
        head.previousFree = block;
      }
      heads[sizeClass] = block;
      nonEmpty[sizeClass / Long.SIZE] |= 1L << sizeClass;
    }

    private void unlink(Block block) {
      int sizeClass = SizeClasses.of(block.granules);
      if (block.previousFree != null) {
        block.previousFree.nextFree = block.nextFree;
      } else {
        heads[sizeClass] = block.nextFree;
        if (block.nextFree == null) {
          nonEmpty[sizeClass / Long.SIZE] &= ~(1L << sizeClass);
        }
      }
      if (block.nextFree != null) {
        block.nextFree.previousFree = block.previousFree;
      }
      block.previousFree = null;
      block.nextFree = null;
      block.free = false;
    }

    /**
     * Sorts lengths into classes for the free lists. Up to 63 granules each length has its own
     * class. Above that there are 32 equal steps per power of two, so the lengths of one class
     * differ by less than 1/32.
     */
    static final class SizeClasses {
      private static final int STEP_BITS = 5;
      private static final int STEPS = 1 << STEP_BITS;

      /** One more than the class of the longest block. */
      static final int COUNT = of(Integer.MAX_VALUE / Granules.BYTES) + 1;

      private SizeClasses() {}

      /** The class of a free block of this length. */
      static int of(int granules) {
        if (granules < STEPS) {
          return granules;
        }
        int magnitude = Integer.SIZE - 1 - Integer.numberOfLeadingZeros(granules);
        int shift = magnitude - STEP_BITS;
        return (shift << STEP_BITS) + (granules >>> shift);
      }
    }
  }
}
