package io.weft.memory;

/** A mapped file of the arena; its counts are guarded by the ledger. */
final class Segment {
  final int id;
  final Tier tier;
  final MappedSegment mapping;

  /** Made for one extent longer than the arena's segments, and deleted with it. */
  final boolean oversize;

  /** Of the file; a trimmed oversize segment is shorter than its mapping. */
  long bytes;

  /** Extents that are out. */
  int extents;

  /** When the last of them came back; meaningless while some are out. */
  long emptySince;

  /** The block at offset 0; the others follow it in address order. */
  final Block first;

  Segment(int id, Tier tier, MappedSegment mapping, boolean oversize) {
    this.id = id;
    this.tier = tier;
    this.mapping = mapping;
    this.oversize = oversize;
    this.bytes = mapping.size();
    this.first = new Block(this, 0, Granules.covering(bytes));
  }
}
