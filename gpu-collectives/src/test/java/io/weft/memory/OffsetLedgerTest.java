package io.weft.memory;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

class OffsetLedgerTest {
  private record Run(long offset, long bytes) {
    boolean overlaps(Run other) {
      return offset < other.offset + other.bytes && other.offset < offset + bytes;
    }
  }

  @Test
  void runsNeverOverlapAndAreJoinedWhenFreed() {
    long bytes = 1 << 16;
    for (int seed = 0; seed < 20; seed++) {
      Random random = new Random(seed);
      OffsetLedger ledger = new OffsetLedger(bytes);
      List<Run> taken = new ArrayList<>();
      for (int i = 0; i < 500; i++) {
        long wanted = OffsetLedger.aligned(1 + random.nextInt(5000));
        long offset = random.nextInt(3) == 0 ? OffsetLedger.NONE : ledger.take(wanted);
        if (offset != OffsetLedger.NONE) {
          Run run = new Run(offset, wanted);
          assertThat(taken).noneMatch(run::overlaps);
          assertThat(offset + wanted).isLessThanOrEqualTo(bytes);
          taken.add(run);
        } else if (!taken.isEmpty()) {
          Run run = taken.remove(random.nextInt(taken.size()));
          ledger.give(run.offset(), run.bytes());
        }
        long used = taken.stream().mapToLong(Run::bytes).sum();
        assertThat(ledger.freeBytes()).isEqualTo(bytes - used);
      }
      taken.forEach(run -> ledger.give(run.offset(), run.bytes()));
      assertThat(ledger.take(bytes)).isZero();
      assertThat(ledger.take(128)).isEqualTo(OffsetLedger.NONE);
    }
  }

  @Test
  void sameRequestsGetTheSameOffsets() {
    OffsetLedger one = new OffsetLedger(1 << 20);
    OffsetLedger two = new OffsetLedger(1 << 20);
    Random random = new Random(5);
    for (int i = 0; i < 100; i++) {
      long wanted = OffsetLedger.aligned(random.nextInt(9000));
      assertThat(one.take(wanted)).isEqualTo(two.take(wanted));
    }
  }
}
