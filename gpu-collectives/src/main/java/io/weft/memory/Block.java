package io.weft.memory;

/**
 * A run of granules of one segment, free or allocated. The blocks of a segment form a list in
 * address order without gaps. Free blocks are also in the list of their size class. Guarded by the
 * arena's lock.
 */
final class Block {
  final Segment segment;
  int start;
  int granules;
  boolean free;

  Block previous;
  Block next;
  Block previousFree;
  Block nextFree;

  /** The extent of the owner, while the block is allocated. */
  Extent extent;

  /** The place of the allocation, while the block is allocated and extents are traced. */
  Throwable site;

  Block(Segment segment, int start, int granules) {
    this.segment = segment;
    this.start = start;
    this.granules = granules;
  }

  /** Cuts off everything after the first granules and returns it, linked after this block. */
  Block split(int first) {
    Block rest = new Block(segment, start + first, granules - first);
    granules = first;
    rest.previous = this;
    rest.next = next;
    if (next != null) {
      next.previous = rest;
    }
    next = rest;
    return rest;
  }

  /** Merges the next block into this one; the next block must not be used any more. */
  void absorbNext() {
    Block gone = next;
    granules += gone.granules;
    next = gone.next;
    if (next != null) {
      next.previous = this;
    }
  }
}
