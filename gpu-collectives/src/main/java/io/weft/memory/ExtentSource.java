package io.weft.memory;

/**
 * Takes extents out of tiers, which grow by segments as long as they may. Thread-safe: one thread
 * makes a tier's next segment, those that need it wait.
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

  /** An extent of what is free or can be added; null where there is no room. */
  Extent take(Tier tier, int granules) throws ArenaFullException {
    if (isOversize(granules)) {
      return oversize(tier, granules);
    }
    Extent extent = ledger.take(tier, granules, false);
    return extent != null ? extent : growOrTake(tier, granules);
  }

  /** As {@link #take}, for a tier that did not grow just now: something may have been freed. */
  Extent takeFreed(Tier tier, int granules) {
    return isOversize(granules) ? oversize(tier, granules) : ledger.take(tier, granules, true);
  }

  private boolean isOversize(int granules) {
    return Granules.bytes(granules) > segmentBytes;
  }

  private Extent oversize(Tier tier, int granules) {
    Extent extent = supply.oversize(tier, granules);
    if (extent == null && supply.evict(tier, Granules.bytes(granules))) {
      extent = supply.oversize(tier, granules);
    }
    return extent;
  }

  /** One thread makes a segment, the others wait for it and look again. Null: no room. */
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
      // Another thread may have freed, or grown, since this one found nothing.
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
