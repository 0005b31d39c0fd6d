package io.weft.memory;

import io.weft.memory.ExtentLedger.Granules;

/**
 * Takes extents from tiers and lets the tiers grow by segments. Thread-safe: one thread creates a
 * tier's next segment, and the threads that need it wait.
 */
final class ExtentSource {
  private final long segmentBytes;
  private final ExtentLedger ledger;
  private final SegmentSupply supply;

  ExtentSource(long segmentBytes, ExtentLedger ledger, SegmentSupply supply) {
    this.segmentBytes = segmentBytes;
    this.ledger = ledger;
    this.supply = supply;
  }

  /** Takes an extent from free memory or from a new segment; null when there is no room. */
  Extent take(Tier tier, int granules) throws ArenaFullException {
    if (isOversize(granules)) {
      return takeSegment(tier, granules);
    }
    Extent extent = ledger.take(tier, granules, false);
    return extent != null ? extent : growOrTake(tier, granules);
  }

  /**
   * As {@link #take}, for a tier that could not grow a moment ago: an extent may have been freed.
   */
  Extent takeFreed(Tier tier, int granules) {
    return isOversize(granules) ? takeSegment(tier, granules) : ledger.take(tier, granules, true);
  }

  private boolean isOversize(int granules) {
    return Granules.bytes(granules) > segmentBytes;
  }

  /** Takes a new segment as one extent; null when there is no room. */
  Extent takeSegment(Tier tier, int granules) {
    Extent extent = supply.oversize(tier, granules);
    if (extent == null && supply.evict(tier, Granules.bytes(granules))) {
      extent = supply.oversize(tier, granules);
    }
    return extent;
  }

  /** One thread creates a segment; the others wait for it and search again. Null: no room. */
  private Extent growOrTake(Tier tier, int granules) throws ArenaFullException {
    while (true) {
      SingleFlight.Flight flight = tier.growth.enter();
      if (flight == null) {
        return leadGrowth(tier, granules);
      }
      boolean grown = flight.awaitLanding("a new segment of " + tier.kind);
      Extent extent = ledger.take(tier, granules, true);
      if (extent != null || !grown) {
        return extent;
      }
    }
  }

  private Extent leadGrowth(Tier tier, int granules) {
    Extent extent = null;
    try {
      // Another thread may have freed memory or added a segment since the last search.
      extent = ledger.take(tier, granules, true);
      if (extent == null) {
        extent = supply.grow(tier, segmentBytes, granules);
      }
      return extent;
    } finally {
      tier.growth.land(extent != null);
    }
  }
}
