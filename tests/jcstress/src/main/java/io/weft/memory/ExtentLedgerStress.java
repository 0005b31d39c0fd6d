package io.weft.memory;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;

import io.weft.memory.ExtentLedger.Granules;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Arbiter;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.JJI_Result;
import org.openjdk.jcstress.infra.results.JJ_Result;

/** The arena's counters stay correct under concurrent allocations and frees. */
final class ExtentLedgerStress {
  private static final long SEGMENT_BYTES = 1 << 20;

  /** Its bytes are never read or written here, so all states share one. */
  private static final MappedSegment MAPPING = map();

  private ExtentLedgerStress() {}

  private static MappedSegment map() {
    try {
      Path folder = Files.createTempDirectory("weft-jcstress-");
      MappedSegment mapping = MappedSegment.reserve(folder.resolve("segment"), SEGMENT_BYTES);
      Files.delete(mapping.file());
      Files.delete(folder);
      return mapping;
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** A ledger with one segment, all free. */
  private static class Books {
    final Tier tier = new Tier(MemoryKind.SHARED_MEMORY, SEGMENT_BYTES, null);
    final ExtentLedger ledger =
        new ExtentLedger(
            tier,
            new Tier(MemoryKind.DISK, 0, null),
            new Tier(MemoryKind.PRIVATE, 0, null),
            new Tier(MemoryKind.PRIVATE, 0, null));

    Books() {
      int id = ledger.claim(tier, SEGMENT_BYTES);
      Extent first = ledger.add(new Segment(id, tier, MAPPING, false), 1);
      ledger.free(first);
    }

    void takeAndFree(int granules) {
      ledger.free(ledger.take(tier, granules, true));
    }

    /** Returns whether all free blocks have been merged into one again. */
    boolean isWhole() {
      return ledger.take(tier, Granules.covering(SEGMENT_BYTES), true) != null;
    }
  }

  /**
   * Adjacent extents are freed at the same time: nothing is used, and the segment is one block
   * again.
   */
  @JCStressTest
  @Outcome(id = "0, 0, 1", expect = ACCEPTABLE, desc = "As before.")
  @Outcome(expect = FORBIDDEN, desc = "Bytes, extents or a neighbour were lost.")
  @State
  public static class TakeAndFree extends Books {
    @Actor
    public void one() {
      takeAndFree(2);
    }

    @Actor
    public void other() {
      takeAndFree(3);
    }

    @Arbiter
    public void look(JJI_Result result) {
      ArenaStatistics now = ledger.statistics();
      result.r1 = now.usedBytes();
      result.r2 = now.extents();
      result.r3 = isWhole() ? 1 : 0;
    }
  }

  /** Counters of one snapshot are consistent: the bytes match the extents. */
  @JCStressTest
  @Outcome(id = "0, 0", expect = ACCEPTABLE, desc = "Before or after.")
  @Outcome(id = "4, 1", expect = ACCEPTABLE, desc = "Taken.")
  @Outcome(id = "2, 1", expect = ACCEPTABLE, desc = "Trimmed.")
  @Outcome(expect = FORBIDDEN, desc = "Counters of different states.")
  @State
  public static class CountersOfOneMoment extends Books {
    @Actor
    public void use() {
      Extent extent = ledger.take(tier, 4, true);
      ledger.free(ledger.trim(extent, 2));
    }

    @Actor
    public void look(JJ_Result result) {
      ArenaStatistics now = ledger.statistics();
      result.r1 = now.usedBytes() / Granules.bytes(1);
      result.r2 = now.extents();
    }
  }
}
