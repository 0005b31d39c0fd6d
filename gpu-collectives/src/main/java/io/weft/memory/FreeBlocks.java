package io.weft.memory;

import io.weft.memory.ExtentLedger.Granules;

/**
 * The free blocks of one tier, in lists by size class (a segregated fit). Taking and freeing take a
 * bounded number of steps for any number of segments. A few entries of the request's own class are
 * tried, then a block of the first non-empty larger class is split. Free neighbours in a segment
 * are joined at once, so an empty segment is one block again.
 *
 * <p>Not thread-safe: guarded by the arena's lock.
 */
final class FreeBlocks {
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
   * Sorts lengths into classes for the free lists. Up to 63 granules each length has its own class.
   * Above that there are 32 equal steps per power of two, so the lengths of one class differ by
   * less than 1/32.
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
