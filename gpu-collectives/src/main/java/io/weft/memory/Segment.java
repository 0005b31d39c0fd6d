package io.weft.memory;

import io.weft.memory.ExtentLedger.Granules;

/** A mapped file of the arena; its counts are guarded by the ledger. */
final class Segment {
  final int id;
  final Tier tier;
  final MappedSegment mapping;

  /**
   * Whether it is deleted with its last extent and its freed parts are not allocated again. It was
   * created for one extent longer than the arena's segments, or it has lost its name.
   */
  boolean disposable;

  /** Whether it does not count in its tier's budget. */
  boolean exempt;

  /** Whether another arena had it. */
  boolean adopted;

  /** The length of the file; a trimmed segment of one extent is shorter than its mapping. */
  long bytes;

  /** The number of allocated extents. */
  int extents;

  /** The time at which the last extent was freed; undefined while extents are allocated. */
  long emptySince;

  /** The block at offset 0; the other blocks follow it in address order. */
  final Block first;

  Segment(int id, Tier tier, MappedSegment mapping, boolean disposable) {
    this.id = id;
    this.tier = tier;
    this.mapping = mapping;
    this.disposable = disposable;
    this.bytes = mapping.size();
    this.first = new Block(this, 0, Granules.covering(bytes));
  }
}
