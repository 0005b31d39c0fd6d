package io.weft.memory;

/**
 * A run of granules of one segment, free or handed out. Blocks of a segment form a list in address
 * order without gaps; free ones are in a list of their size class as well. Guarded by the arena's
 * lock.
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

  /** While the block is out: what its owner holds. */
  Extent extent;

  /** While the block is out and extents are traced: where it was allocated. */
  Throwable site;

  Block(Segment segment, int start, int granules) {
    this.segment = segment;
    this.start = start;
    this.granules = granules;
  }

  int end() {
    return start + granules;
  }

  /** Cuts off everything behind the first granules and returns it, linked in behind this block. */
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

  /** Takes over the block behind this one, which must not be used any more. */
  void absorbNext() {
    Block gone = next;
    granules += gone.granules;
    next = gone.next;
    if (next != null) {
      next.previous = this;
    }
  }
}
